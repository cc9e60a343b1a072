//! Rust source as words and marks with their lines, without comments and literals.
//! Enough to count braces and find words that mean something, far from a parser: what it must never do is take a
//! brace or a keyword out of a string, a comment or a character for code.

/// One word (identifier, keyword or number) or one punctuation character.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is_word(&self) -> bool {
        self.text.starts_with(is_word_char)
    }
}

/// The words and marks of `text`, in order.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let skipped = blank(rest).or_else(|| comment(rest)).or_else(|| literal(rest));
        let length = skipped.or_else(|| word(rest)).unwrap_or(first.len_utf8());
        let (head, tail) = rest.split_at(length);
        if skipped.is_none() {
            found.push(Token { text: head, line });
        }
        line += head.matches('\n').count();
        rest = tail;
    }
    found
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Length of the white space that `text` starts with.
fn blank(text: &str) -> Option<usize> {
    let length = text.len() - text.trim_start().len();
    (length > 0).then_some(length)
}

/// Length of the word that `text` starts with; `r#type` is one word.
fn word(text: &str) -> Option<usize> {
    let raw = text.strip_prefix("r#").filter(|rest| rest.starts_with(is_word_char));
    let name = raw.unwrap_or(text);
    let length = name.find(|c| !is_word_char(c)).unwrap_or(name.len());
    (length > 0).then_some(text.len() - name.len() + length)
}

/// Length of the comment that `text` starts with; block comments nest.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        let Some(next) = text[at..].find(['/', '*']) else { return Some(text.len()) };
        at += next;
        match text.get(at..at + 2) {
            Some("/*") => (depth, at) = (depth + 1, at + 2),
            Some("*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    Some(at)
}

/// Length of the string, character or lifetime that `text` starts with, prefix included.
fn literal(text: &str) -> Option<usize> {
    for prefix in ["r", "br", "cr"] {
        if let Some(body) = text.strip_prefix(prefix).and_then(raw_string) {
            return Some(prefix.len() + body);
        }
    }
    for prefix in ["", "b", "c"] {
        if let Some(body) = text.strip_prefix(prefix).and_then(string) {
            return Some(prefix.len() + body);
        }
    }
    text.strip_prefix('b')
        .and_then(character)
        .map(|n| n + 1)
        .or_else(|| character(text))
        .or_else(|| lifetime(text))
}

fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let body = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &text[..hashes]);
    Some(body.find(&end).map_or(text.len(), |at| hashes + 1 + at + end.len()))
}

fn string(text: &str) -> Option<usize> {
    let body = text.strip_prefix('"')?;
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 2),
            _ => {}
        }
    }
    Some(text.len())
}

fn character(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    let first = body.chars().next()?;
    if first != '\\' {
        return body[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8() + 2);
    }
    let escaped = body[1..].chars().next()?;
    let after = 1 + escaped.len_utf8();
    body[after..].find('\'').map(|at| 1 + after + at + 1)
}

fn lifetime(text: &str) -> Option<usize> {
    word(text.strip_prefix('\'')?).map(|length| length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_are_no_code() {
        assert_eq!(
            words("a // { fn\nb /* { /* nested } */ fn */ c /// doc {\n//! {\nd"),
            ["a", "b", "c", "d"]
        );
        assert_eq!(words("a /* never closed {"), ["a"]);
        assert_eq!(words("a / b"), ["a", "/", "b"]);
    }

    #[test]
    fn strings_are_no_code() {
        assert_eq!(words(r#"a "}" "\"}" "\\" b"{" c"{" b"#), ["a", "b"]);
        assert_eq!(words(r####"a r"\" r#"}"{"# br##"{"#"## cr"{" b"####), ["a", "b"]);
        assert_eq!(words("a \"never closed {"), ["a"]);
    }

    #[test]
    fn characters_are_no_code_and_lifetimes_no_characters() {
        assert_eq!(words(r"a '{' '\'' '\\' '\u{7d}' b'{' b'\'' 'é' b"), ["a", "b"]);
        assert_eq!(words("<'a, 'b>{'c'}"), ["<", ",", ">", "{", "}"]);
        assert_eq!(
            words("'outer: loop {'_'; x::<'_>}"),
            [":", "loop", "{", ";", "x", ":", ":", "<", ">", "}"]
        );
    }

    #[test]
    fn raw_names_are_one_word() {
        assert_eq!(words("fn r#fn() r#\"fn\"#"), ["fn", "r#fn", "(", ")"]);
        assert_eq!(words("r br 0x7F_u8 1.5"), ["r", "br", "0x7F_u8", "1", ".", "5"]);
    }

    #[test]
    fn lines_count_through_what_is_skipped() {
        let text = "a\n/* two\nthree */ b\n\"four\nfive\" c";
        let lines: Vec<_> = tokens(text).iter().map(|token| (token.text, token.line)).collect();
        assert_eq!(lines, [("a", 1), ("b", 3), ("c", 5)]);
    }
}
