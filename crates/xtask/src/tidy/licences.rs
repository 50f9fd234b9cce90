//! Every dependency may be used in a product: its licence offers at least one of these.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::shell::{capture, cargo};

const FREE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "OpenSSL",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

#[test]
fn dependencies_have_a_permitted_licence() {
    let text =
        capture(&mut cargo(["metadata", "--format-version", "1", "--locked"])).expect("cargo metadata runs");
    let metadata: Value = serde_json::from_str(&text).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages are listed");
    assert!(packages.len() > 100);
    let mut strange = BTreeSet::new();
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none given");
        if !is_free(licence) {
            strange.insert(format!("{} ({licence})", package["name"]));
        }
    }
    assert!(
        strange.is_empty(),
        "licences that are not on the list: {strange:#?}"
    );
}

/// An expression is permitted if every part joined by AND offers a permitted choice.
fn is_free(expression: &str) -> bool {
    let plain = expression
        .replace(['(', ')'], " ")
        .replace(" WITH LLVM-exception", "")
        .replace('/', " OR ");
    plain
        .split(" AND ")
        .all(|part| part.split(" OR ").any(|name| FREE.contains(&name.trim())))
}

#[test]
fn unknown_licence_is_rejected() {
    assert!(
        is_free("MIT OR Apache-2.0")
            && is_free("(MIT OR GPL-3.0) AND Unicode-3.0")
            && is_free("MIT/Apache-2.0")
    );
    assert!(!is_free("GPL-3.0") && !is_free("MIT AND AGPL-3.0") && !is_free("none given"));
}
