//! JSON pointers: splitting, joining, display.

/// The unescaped tokens of a pointer; the empty pointer has none.
pub fn tokens(pointer: &str) -> impl Iterator<Item = String> {
    pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
}

/// `pointer` extended by one token.
pub fn join(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// A pointer in the usual path notation: `/tests/0/name` is `tests[0].name`.
pub fn dotted(pointer: &str) -> String {
    let mut text = String::new();
    for token in tokens(pointer) {
        if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit()) {
            text.push('[');
            text.push_str(&token);
            text.push(']');
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(&token);
        }
    }
    text
}
