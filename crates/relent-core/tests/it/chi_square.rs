//! Pearson's test: do so many draws follow the law that the documentation states?

/// Whether the counts fit the probabilities. The limit is passed by chance once in 30 000 runs; seeds are fixed, so in
/// none of these.
pub(crate) fn fits(counts: &[u64], probabilities: &[f64]) -> Result<(), String> {
    assert_eq!(counts.len(), probabilities.len());
    let total = counts.iter().sum::<u64>() as f64;
    let (mut statistic, mut cells) = (0.0, 0);
    // Cells with few expected draws are taken together, as the test's approximation asks.
    let (mut count, mut expected) = (0.0, 0.0);
    for (n, p) in counts.iter().zip(probabilities) {
        count += *n as f64;
        expected += p * total;
        if expected >= 10.0 {
            statistic += (count - expected).powi(2) / expected;
            cells += 1;
            (count, expected) = (0.0, 0.0);
        }
    }
    if count > 0.0 && expected < 1e-9 {
        return Err(format!("{count} draws where none can be"));
    }
    let limit = upper_quantile(f64::from(cells - 1));
    if statistic <= limit { Ok(()) } else { Err(format!("chi-square {statistic:.1}, limit {limit:.1}")) }
}

/// Whether the draws are uniform on `low..=high`, and none is outside.
pub(crate) fn uniform(draws: impl Iterator<Item = u64>, low: u64, high: u64) -> Result<(), String> {
    let cells = 50.min(high - low + 1);
    let mut counts = vec![0; cells as usize];
    for draw in draws {
        if draw < low || draw > high {
            return Err(format!("{draw} is outside {low}..={high}"));
        }
        let cell = u128::from(draw - low) * u128::from(cells) / (u128::from(high - low) + 1);
        counts[cell as usize] += 1;
    }
    fits(&counts, &vec![1.0 / cells as f64; cells as usize])
}

/// The chi-square value that four standard deviations correspond to (Wilson and Hilferty's cube).
fn upper_quantile(degrees: f64) -> f64 {
    let spread = 2.0 / (9.0 * degrees);
    degrees * (1.0 - spread + 4.0 * spread.sqrt()).powi(3)
}

#[test]
fn the_test_itself_can_fail() {
    let slope = (0..100_000_u64).map(|n| (n * n / 100_000) % 1000);
    assert!(uniform(slope, 0, 999).is_err());
    let outside = (0..100_000_u64).map(|n| n % 1001);
    assert!(uniform(outside, 0, 999).is_err());
    let even = (0..100_000_u64).map(|n| n % 1000);
    assert_eq!(uniform(even, 0, 999), Ok(()));
}

#[test]
fn one_part_in_fifty_too_many_is_seen() {
    let skewed = (0..100_000_u64).map(|n| if n % 50 == 0 { 999 } else { n % 1000 });
    assert!(uniform(skewed, 0, 999).is_err());
}
