//! Robust centre and spread of a few numbers. Intervals are in `interval`.

/// Computes the median; 0 for no values.
pub(super) fn compute_median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let upper = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut middle, _) = values.select_nth_unstable_by(upper, f64::total_cmp);
    match below.iter().copied().reduce(f64::max) {
        Some(lower) if even => f64::midpoint(lower, middle),
        _ => middle,
    }
}

/// Computes the median of the means of all pairs of values (Hodges and Lehmann 1963). It is nearly as efficient as the
/// mean with normal noise, and resists outliers. `None` for no values.
#[must_use]
pub fn compute_centre(values: &[f64]) -> Option<f64> {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (at, a) in values.iter().enumerate() {
        means.extend(values[at..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    (!means.is_empty()).then(|| compute_median(means))
}

/// Computes a robust standard deviation: 1.4826 times the median distance from the median, which equals the standard
/// deviation if the noise is normal. 0 for fewer than two values.
pub(super) fn compute_robust_deviation(values: &[f64]) -> f64 {
    let middle = compute_median(values.to_vec());
    1.4826 * compute_median(values.iter().map(|value| (value - middle).abs()).collect())
}

/// Computes the standard deviation; `None` for fewer than two values.
pub(super) fn compute_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (n - 1.0)).sqrt())
}
