//! Benchmark of the envelope check, compared with parsing the same bytes.

mod sample;

use divan::Bencher;
use divan::counter::BytesCount;
use module::envelope::{CheckOptions, check_reply};
use sample::{Kind, SIZES};
use serde_json::Value;

fn main() {
    divan::main();
}

#[divan::bench(args = SIZES)]
fn parse_text(bencher: Bencher<'_, '_>, size: usize) {
    parse(bencher, Kind::Text, size);
}

#[divan::bench(args = SIZES)]
fn parse_numbers(bencher: Bencher<'_, '_>, size: usize) {
    parse(bencher, Kind::Numbers, size);
}

#[divan::bench(args = SIZES)]
fn check_text(bencher: Bencher<'_, '_>, size: usize) {
    check(bencher, Kind::Text, size);
}

#[divan::bench(args = SIZES)]
fn check_numbers(bencher: Bencher<'_, '_>, size: usize) {
    check(bencher, Kind::Numbers, size);
}

fn parse(bencher: Bencher<'_, '_>, kind: Kind, size: usize) {
    let reply = sample::reply(kind, size);
    bencher
        .counter(BytesCount::new(reply.len()))
        .bench(|| serde_json::from_slice::<Value>(&reply));
}

fn check(bencher: Bencher<'_, '_>, kind: Kind, size: usize) {
    let module = sample::module();
    let reply = sample::reply(kind, size);
    let options = CheckOptions::default();
    assert!(check_reply(&module, &reply, &options).envelope.is_ok());
    bencher
        .counter(BytesCount::new(reply.len()))
        .bench(|| check_reply(&module, &reply, &options));
}
