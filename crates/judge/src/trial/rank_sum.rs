//! The exact rank-sum test of two small samples. It assumes nothing about the noise, so that a single outlier cannot
//! decide (Wilcoxon 1945, "Individual comparisons by ranking methods"; Mann and Whitney 1947).

/// Computes the probability that values lie at least as far below `reference` as `values` do, if all values come from
/// one distribution. Equal values count as not below. Returns 1 if a sample is empty.
#[must_use]
pub fn compute_probability_below(values: &[f64], reference: &[f64]) -> f64 {
    let (m, n) = (values.len(), reference.len());
    if m == 0 || n == 0 {
        return 1.0;
    }
    let not_below = |value: &f64| reference.iter().filter(|other| *other <= value).count();
    let seen: usize = values.iter().map(not_below).sum();
    // Number of orders of all values for each such sum: the coefficients of a Gaussian binomial.
    let mut orders = vec![0.0; seen + 1];
    orders[0] = 1.0;
    let mut all = 1.0;
    for i in 1..=m {
        for sum in (n + i..=seen).rev() {
            orders[sum] -= orders[sum - n - i];
        }
        for sum in i..=seen {
            orders[sum] += orders[sum - i];
        }
        all *= (n + i) as f64 / i as f64;
    }
    orders.iter().sum::<f64>() / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_counting_all_orders() {
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        let mut counted = 0;
        // All choices of three of ten ranks.
        for mask in 0..1_u32 << 10 {
            let chosen = |at: &usize| mask >> at & 1 == 1;
            let [values, reference] = [true, false].map(|wanted| {
                let of = (0..10).filter(|at| chosen(at) == wanted);
                of.map(|at| ten[at]).collect::<Vec<f64>>()
            });
            if values.len() != 3 {
                continue;
            }
            counted += 1;
            let probability = compute_probability_below(&values, &reference);
            let sum = |values: &[f64]| values.iter().sum::<f64>();
            let mut as_low = 0;
            for other in 0..1_u32 << 10 {
                let of = (0..10).filter(|at| other >> at & 1 == 1);
                let other: Vec<f64> = of.map(|at| ten[at]).collect();
                as_low += usize::from(other.len() == 3 && sum(&other) <= sum(&values));
            }
            assert!(
                (probability - as_low as f64 / 120.0).abs() < 1e-12,
                "{values:?}"
            );
        }
        assert_eq!(counted, 120);
    }

    #[test]
    fn ties_and_empty_samples_prove_nothing() {
        assert_eq!(compute_probability_below(&[], &[1.0]), 1.0);
        assert_eq!(compute_probability_below(&[1.0], &[]), 1.0);
        assert_eq!(compute_probability_below(&[1.0, 1.0], &[1.0; 5]), 1.0);
    }
}
