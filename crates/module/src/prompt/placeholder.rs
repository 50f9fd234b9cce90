//! The placeholders of a template and their recognition. The module checks and the renderer share this
//! tokenizer.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder<'a> {
    Arguments,
    Argument(usize),
    Input,
    Schema,
    Field(&'a str),
    Media,
}

impl Placeholder<'_> {
    pub(crate) fn shows_input(&self) -> bool {
        match self {
            Self::Arguments | Self::Argument(_) | Self::Input | Self::Field(_) => true,
            Self::Schema | Self::Media => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    Text(&'a str),
    Placeholder(Placeholder<'a>),
}

/// The tokens of the template in order; together they cover the whole template.
pub fn tokens(template: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((placeholder, length)) = placeholder(rest) {
            rest = rest.get(length..).unwrap_or_default();
            return Some(Token::Placeholder(placeholder));
        }
        // At least one character is text; the text ends where the next placeholder begins.
        let mut border = rest.len();
        for (at, _) in rest.match_indices('$') {
            if at > 0 && rest.get(at..).and_then(placeholder).is_some() {
                border = at;
                break;
            }
        }
        let (text, tail) = rest.split_at(border);
        rest = tail;
        Some(Token::Text(text))
    })
}

/// The placeholder at the beginning of `text` and its length in bytes.
fn placeholder(text: &str) -> Option<(Placeholder<'_>, usize)> {
    let name = text.strip_prefix('$')?;
    if let Some(inner) = name.strip_prefix('{') {
        let end = inner.find(|c: char| !is_word(c) && !matches!(c, '.' | '-'))?;
        let (field, tail) = inner.split_at(end);
        let named = !field.is_empty() && tail.starts_with('}');
        return named.then_some((Placeholder::Field(field), end + 3));
    }
    let end = name.find(|c: char| !is_word(c)).unwrap_or(name.len());
    let (word, tail) = name.split_at(end);
    if let Some(index) = number(word) {
        return Some((Placeholder::Argument(index), 1 + word.len()));
    }
    let placeholder = match word {
        "ARGUMENTS" => match indexed(tail) {
            Some((index, length)) => return Some((Placeholder::Argument(index), 1 + word.len() + length)),
            None => Placeholder::Arguments,
        },
        "INPUT" => Placeholder::Input,
        "SCHEMA" => Placeholder::Schema,
        "MEDIA_INPUTS" => Placeholder::Media,
        _ => return None,
    };
    Some((placeholder, 1 + word.len()))
}

/// `[N]` and its length.
fn indexed(text: &str) -> Option<(usize, usize)> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(|c: char| !c.is_ascii_digit())?;
    let (digits, tail) = inner.split_at(end);
    let index = number(digits)?;
    tail.starts_with(']').then_some((index, end + 2))
}

fn number(text: &str) -> Option<usize> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
