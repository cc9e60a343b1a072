//! Where lines end.
//!
//! Lines of a head are short, and a call of memchr for each costs more than all of the words of a head looked at once.

/// Where the line feeds are, from the front.
pub(super) struct LineFeeds<'a> {
    rest: &'a [u8],
    /// Of the word that was taken last, a high bit for each line feed that was not told yet.
    found: u64,
    /// Where the word behind that one begins.
    next: usize,
}

const WORD: usize = size_of::<u64>();
const LOW_BITS: u64 = u64::from_le_bytes([0x7f; WORD]);
const LINE_FEEDS: u64 = u64::from_le_bytes([b'\n'; WORD]);

impl LineFeeds<'_> {
    pub(super) fn new(bytes: &[u8]) -> LineFeeds<'_> {
        LineFeeds { rest: bytes, found: 0, next: 0 }
    }
}

impl Iterator for LineFeeds<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.found == 0 {
            let word = match self.rest.split_first_chunk() {
                Some((word, rest)) => {
                    self.rest = rest;
                    u64::from_le_bytes(*word)
                }
                None if self.rest.is_empty() => return None,
                None => last_word(std::mem::take(&mut self.rest)),
            };
            self.next += WORD;
            // A line feed is a zero byte now, and of all bytes only those keep their high bit clear.
            let word = word ^ LINE_FEEDS;
            self.found = !(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS);
        }
        let place = self.found.trailing_zeros() as usize / 8;
        self.found &= self.found - 1;
        Some(self.next - WORD + place)
    }
}

/// Fewer bytes than a word has, filled up with zeros.
fn last_word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::LineFeeds;

    proptest::proptest! {
        #[test]
        fn every_line_feed_is_found(bytes in proptest::collection::vec(0_u8..16, 0..100), high: bool) {
            // Neighbours of a line feed, and the same bytes with their high bit.
            let bytes: Vec<u8> = bytes.iter().map(|byte| byte | if high && byte % 3 == 0 { 0x80 } else { 0 }).collect();
            let expected: Vec<_> = (0..bytes.len()).filter(|place| bytes[*place] == b'\n').collect();
            proptest::prop_assert_eq!(LineFeeds::new(&bytes).collect::<Vec<_>>(), expected);
        }
    }
}
