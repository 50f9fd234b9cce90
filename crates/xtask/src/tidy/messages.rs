//! The page of messages is the one that `cargo x gen` writes.

use crate::{git_files, messages};

#[test]
fn the_page_of_messages_is_up_to_date() {
    let page = messages::render().expect("every source file is Rust");
    assert!(
        page == git_files::read(messages::PAGE),
        "{} is outdated: run `cargo x gen`",
        messages::PAGE
    );
}
