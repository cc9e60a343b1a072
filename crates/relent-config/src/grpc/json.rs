//! JSON with the place of every key and value (RFC 8259), and nothing beside the letter of it.

use std::borrow::Cow;
use std::ops::Range;

use crate::report::Fault;

/// Lists and objects in one another: more is no service config.
const DEEPEST: usize = 32;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind<'t>,
}

#[derive(Debug)]
pub(super) enum Kind<'t> {
    Null,
    Flag(bool),
    /// As it is written.
    Number(&'t str),
    Text(Cow<'t, str>),
    List(Vec<Node<'t>>),
    Object(Vec<Field<'t>>),
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct Field<'t> {
    pub(super) name: Cow<'t, str>,
    pub(super) key: Range<usize>,
    pub(super) value: Node<'t>,
}

/// Reads a whole text.
pub(super) fn read(text: &str) -> Result<Node<'_>, Box<Fault>> {
    let mut reader = Reader { text, at: 0 };
    let node = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.fault("something follows the end", "leave one value: an object")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fault(&self, message: &str, mend: &str) -> Box<Fault> {
        let length = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        Box::new(Fault::new(self.at..self.at + length, message).mend(mend))
    }

    fn value(&mut self, depth: usize) -> Result<Node<'t>, Box<Fault>> {
        self.space();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{' | b'[') if depth == DEEPEST => {
                return Err(self.fault("this is nested too deeply", "a service config has a few levels"));
            }
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.number()?),
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word()?,
            Some(b'\'') => return Err(self.fault("text stands in double quotes", "write \"…\"")),
            Some(b'/' | b'#') => return Err(self.fault("JSON has no comments", "leave it out")),
            None => return Err(self.fault("the text ends where a value is due", "complete it")),
            Some(_) => return Err(self.fault("this is no JSON value", "write a value, or leave it out")),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind<'t>, Box<Fault>> {
        self.at += 1;
        let mut fields: Vec<Field<'t>> = Vec::new();
        self.space();
        if self.ends(b'}') {
            return Ok(Kind::Object(fields));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.fault(
                    "the name of a field is due",
                    "write \"name\": value, without a comma after the last",
                ));
            }
            let start = self.at;
            let name = self.string()?;
            let key = start..self.at;
            if let Some(first) = fields.iter().find(|field| field.name == name) {
                let fault = Fault::new(key, "this field is there already").mend("leave one of them");
                return Err(Box::new(fault.related("the first one", first.key.clone())));
            }
            self.space();
            if !self.ends(b':') {
                return Err(self.fault("a colon is due", "write \"name\": value"));
            }
            let value = self.value(depth + 1)?;
            fields.push(Field { name, key, value });
            if self.separated(b'}')? {
                return Ok(Kind::Object(fields));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Kind<'t>, Box<Fault>> {
        self.at += 1;
        let mut nodes = Vec::new();
        self.space();
        if self.ends(b']') {
            return Ok(Kind::List(nodes));
        }
        loop {
            nodes.push(self.value(depth + 1)?);
            if self.separated(b']')? {
                return Ok(Kind::List(nodes));
            }
        }
    }

    fn ends(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    /// Whether the end follows; otherwise a comma has to.
    fn separated(&mut self, end: u8) -> Result<bool, Box<Fault>> {
        self.space();
        if self.ends(end) {
            return Ok(true);
        }
        if self.ends(b',') {
            return Ok(false);
        }
        Err(self.fault("a comma or the end is due", "separate values with commas, and close what is open"))
    }

    fn word(&mut self) -> Result<Kind<'t>, Box<Fault>> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let kind = match &rest[..length] {
            "true" => Kind::Flag(true),
            "false" => Kind::Flag(false),
            "null" => Kind::Null,
            _ => {
                let fault = Fault::new(self.at..self.at + length, "this is no JSON value");
                return Err(Box::new(fault.mend("write text in double quotes")));
            }
        };
        self.at += length;
        Ok(kind)
    }

    fn number(&mut self) -> Result<&'t str, Box<Fault>> {
        let rest = &self.text[self.at..];
        let length =
            rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+')).count();
        let number = &rest[..length];
        if !is_number(number) {
            let fault = Fault::new(self.at..self.at + length, "this is no JSON number");
            const MEND: &str = "write it as in 5 or 0.5; a length of time stands in quotes, with its unit";
            return Err(Box::new(fault.mend(MEND)));
        }
        self.at += length;
        Ok(number)
    }

    fn string(&mut self) -> Result<Cow<'t, str>, Box<Fault>> {
        let start = self.at + 1;
        self.at = start;
        let mut owned: Option<String> = None;
        loop {
            match self.peek() {
                None | Some(b'\n') => {
                    let fault = Fault::new(start - 1..self.at, "this text has no end");
                    return Err(Box::new(fault.mend("close it with a double quote")));
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    let so_far = owned.get_or_insert_with(|| self.text[start..self.at].to_owned());
                    let mut text = std::mem::take(so_far);
                    text.push(self.escape()?);
                    owned = Some(text);
                }
                Some(0..=0x1f) => {
                    return Err(self.fault("a control character in text", "write it as an escape"));
                }
                Some(_) => {
                    let c = self.text[self.at..].chars().next().expect("there is a byte");
                    self.at += c.len_utf8();
                    owned.iter_mut().for_each(|text| text.push(c));
                }
            }
        }
        let end = self.at;
        self.at += 1;
        Ok(owned.map_or(Cow::Borrowed(&self.text[start..end]), Cow::Owned))
    }

    fn escape(&mut self) -> Result<char, Box<Fault>> {
        let start = self.at;
        self.at += 2;
        let escaped = match self.text.as_bytes().get(start + 1) {
            Some(b'n') => Some('\n'),
            Some(b't') => Some('\t'),
            Some(b'r') => Some('\r'),
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(c @ (b'"' | b'\\' | b'/')) => Some(char::from(*c)),
            Some(b'u') => self.unit().and_then(|unit| self.code_point(unit)),
            _ => None,
        };
        escaped.ok_or_else(|| {
            self.at = start;
            self.fault("this is no escape of JSON", "write \\\\ for a backslash")
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(digits, 16).ok()
    }

    /// Of one unit of UTF-16, or of two.
    fn code_point(&mut self, unit: u32) -> Option<char> {
        if !(0xd800..0xdc00).contains(&unit) {
            return char::from_u32(unit);
        }
        if !self.text[self.at..].starts_with("\\u") {
            return None;
        }
        self.at += 2;
        let low = self.unit().filter(|low| (0xdc00..0xe000).contains(low))?;
        char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
    }
}

/// RFC 8259 §6.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (whole, decimals) = mantissa.split_once('.').map_or((mantissa, None), |(w, d)| (w, Some(d)));
    let led_by_zero = whole.len() > 1 && whole.starts_with('0');
    digits(whole)
        && !led_by_zero
        && decimals.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(node: &Node<'_>) -> String {
        match &node.kind {
            Kind::Null => "null".to_owned(),
            Kind::Flag(flag) => flag.to_string(),
            Kind::Number(number) => (*number).to_owned(),
            Kind::Text(text) => format!("{text:?}"),
            Kind::List(nodes) => format!("[{}]", nodes.iter().map(shown).collect::<Vec<_>>().join(",")),
            Kind::Object(fields) => {
                let fields = fields.iter().map(|field| format!("{:?}:{}", field.name, shown(&field.value)));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
        }
    }

    #[test]
    fn the_letter_of_json_is_read() {
        for (text, expected) in [
            (" {\"a\" : [1, -2.5e3,true,null ,\"\"]}\r\n", "{\"a\":[1,-2.5e3,true,null,\"\"]}"),
            ("{}", "{}"),
            ("[ ]", "[]"),
            ("\"\\u00e9\\n\\\"\\ud83d\\ude00é\"", "\"é\\n\\\"😀é\""),
            ("0", "0"),
        ] {
            assert_eq!(read(text).map(|node| shown(&node)).ok().as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn nothing_else_is() {
        let deep = "[".repeat(40);
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\" 1}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "nul",
            "True",
            "'a'",
            "\"a",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\u12\"",
            "\"\\u+123\"",
            "\"\t\"",
            "1 2",
            "{\"a\":1,\"a\":2}",
            "// c\n1",
            "[1 2]",
            "\u{a0}1",
            &deep,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
