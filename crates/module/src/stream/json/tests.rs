use super::JsonParser;
use crate::steps::assert_linear;

/// Hostile documents: one long text, key or list, escapes, and nesting that opens and closes.
#[test]
fn documents_are_parsed_in_linear_time() {
    let documents: [fn(usize) -> String; 6] = [
        |size| format!("[\"{}\"]", "a".repeat(size)),
        |size| format!("{{\"{}\": 1}}", "k".repeat(size)),
        |size| format!("[{}1]", "1,".repeat(size / 2)),
        |size| format!("[\"{}\"]", "\\u00e9".repeat(size / 6)),
        |size| format!("[{}1]", "[[{\"a\":{}}]],".repeat(size / 13)),
        |size| format!("[\"{}\"]", "é".repeat(size / 2)),
    ];
    for document in documents {
        for piece in [1, 4_096] {
            assert_linear(16 * 1024, |size| {
                let mut parser = JsonParser::new();
                for piece in document(size).as_bytes().chunks(piece) {
                    parser.push(piece, &mut |_| {}).unwrap();
                }
                parser.finish(&mut |_| {}).unwrap();
            });
        }
    }
}
