//! The name that was probably meant.

/// Longer words are no slips of the pen.
const LONGEST: usize = 64;
/// Shorter words are the start of anything.
const SHORTEST_PREFIX: usize = 3;

/// The candidate nearest to `word`, if it is near enough to have been meant: within a third of its letters, or the only
/// one that starts with `word`. Upper and lower case, `-` and `_` are taken as one.
///
/// ```
/// use relent_config::nearest;
///
/// assert_eq!(nearest("atempt-timeout", ["attempts", "attempt_timeout"]), Some("attempt_timeout"));
/// assert_eq!(nearest("idempotent", ["never", "idempotent-methods"]), Some("idempotent-methods"));
/// assert_eq!(nearest("colour", ["attempts", "attempt_timeout"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = letters(word)?;
    let mut best: Option<(usize, &str)> = None;
    let mut longer = Vec::new();
    for candidate in candidates {
        let Some(other) = letters(candidate) else { continue };
        let length = word.len().max(other.len());
        let most = match best {
            Some((0, _)) => break,
            Some((least, _)) => least - 1,
            None => (length / 3).max(1).min(length.saturating_sub(1)),
        };
        if let Some(distance) = distance(&word, &other, most) {
            best = Some((distance, candidate));
        }
        if word.len() >= SHORTEST_PREFIX && other.starts_with(&word) {
            longer.push(candidate);
        }
    }
    match (best, &longer[..]) {
        (Some((_, candidate)), _) => Some(candidate),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

fn letters(word: &str) -> Option<Vec<char>> {
    let fold = |c: char| if c == '-' { '_' } else { c.to_ascii_lowercase() };
    let letters: Vec<char> = word.chars().take(LONGEST + 1).map(fold).collect();
    (letters.len() <= LONGEST).then_some(letters)
}

/// How many letters must be put in, left out, changed, or swapped with their neighbour (optimal string alignment);
/// `None` if that is more than `most`.
fn distance(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before = [0; LONGEST + 1];
    let mut above: [usize; LONGEST + 1] = std::array::from_fn(|j| j);
    for (i, x) in a.iter().enumerate() {
        let mut row = [i + 1; LONGEST + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (above[j] + usize::from(x != y)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            row[j + 1] = least;
        }
        (before, above) = (above, row);
    }
    Some(above[b.len()]).filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let of = |a: &str, b: &str| distance(&letters(a).unwrap(), &letters(b).unwrap(), 2);
        for (a, b, expected) in
            [("", "", 0), ("", "ab", 2), ("abc", "acb", 1), ("base", "bsae", 1), ("cap", "tap", 1)]
        {
            assert_eq!((of(a, b), of(b, a)), (Some(expected), Some(expected)), "{a} {b}");
        }
    }

    #[test]
    fn only_slips_are_mended() {
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest("b", ["a"]), None);
        assert_eq!(nearest("Deadline", ["deadline"]), Some("deadline"));
        assert_eq!(nearest("replay", ["replay_limit", "replay_total"]), None);
        assert_eq!(nearest(&"a".repeat(1_000_000), ["aaa"]), None);
    }
}
