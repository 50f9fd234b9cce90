use super::{SourceText, Use, messages, type_names};

fn message(used: Use, text: &str) -> SourceText {
    let text = text.to_owned();
    SourceText { used, text }
}

#[test]
fn texts_are_found_with_their_use() {
    let source = r#"
        #[derive(thiserror::Error)]
        enum Error { #[error("cannot open {0}")] Open(String) }
        /// A comment is no message.
        fn open() -> Result<()> {
            info!(path, "opened the file");
            let text = "two words";
            fs::read(path).with_context(|| format!("cannot read {path}"))?;
            bail!("no such \
                   folder")
        }
    "#;
    let found = messages(source).expect("Rust");
    assert_eq!(
        found,
        [
            message(Use::Error, "cannot open {0}"),
            message(Use::Log, "opened the file"),
            message(Use::Text, "two words"),
            message(Use::Error, "cannot read {path}"),
            message(Use::Error, "no such folder"),
        ]
    );
}

#[test]
fn documentation_of_arguments_is_help() {
    let source = "
        use clap::Args;
        #[derive(Args)]
        struct Run {
            /// Folder of the
            /// module.
            #[arg(long)]
            folder: String,
        }
    ";
    let found = messages(source).expect("Rust");
    assert_eq!(found, [message(Use::Help, "Folder of the module.")]);
}

#[test]
fn what_only_tests_compile_or_panics_show_is_left_out() {
    let source = r#"
        #[cfg(test)]
        mod tests { fn a() { print("not this one"); } }
        fn b() { c().expect("nor this one"); assert!(d(), "nor that one"); e("one-word", "{\"is\": not prose}") }
    "#;
    assert_eq!(messages(source).expect("Rust"), []);
}

#[test]
fn types_are_listed_without_associated_types() {
    let source = "
        struct A(u8);
        enum B { C }
        trait D { type Item; }
        impl D for A { type Item = u8; }
        type E = A;
        mod f { struct G; }
    ";
    assert_eq!(type_names(source).expect("Rust"), ["A", "B", "D", "E", "G"]);
}
