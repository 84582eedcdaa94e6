//! Reimplements the kernel's unstable sort. Among devices with equal free space, the order after the sort determines
//! which device gets the next chunk.

use std::cmp::Ordering;

/// Sorts like `sort` of lib/sort.c since Linux 6.10. That is a bottom-up heapsort which removes the two largest
/// elements at once where possible, and handles the last two or three elements specially.
pub(crate) fn heapsort<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut end = items.len();
    let mut root = end / 2;
    if root == 0 {
        return;
    }
    // After two equal elements were removed at once, the child that was taken needs another sift.
    let mut second = 0;
    loop {
        if root > 0 {
            root -= 1 << second;
        } else if end > 3 {
            end -= 1;
            items.swap(0, end);
            second = usize::from(compare(&items[1], &items[2]).is_le());
            root = 1 << second;
            end -= 1;
            items.swap(root, end);
        } else {
            break;
        }
        sift_down(&mut items[..end], root, &compare);
    }
    end -= 1;
    items.swap(0, end);
    if end == 2 && compare(&items[0], &items[1]).is_gt() {
        items.swap(0, 1);
    }
}

/// Descends from `root` to a leaf along the larger children, ascends to the position of the root, and rotates
/// the path.
fn sift_down<T>(items: &mut [T], root: usize, compare: &impl Fn(&T, &T) -> Ordering) {
    let end = items.len();
    let mut at = root;
    loop {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        if right < end {
            at = match compare(&items[left], &items[right]).is_ge() {
                true => left,
                false => right,
            };
        } else {
            if right == end {
                at = left;
            }
            break;
        }
    }
    while at != root && compare(&items[root], &items[at]).is_ge() {
        at = (at - 1) / 2;
    }
    let place = at;
    while at != root {
        at = (at - 1) / 2;
        items.swap(at, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts(mut items in prop::collection::vec(0u8..20, 0..60)) {
            let mut expected = items.clone();
            expected.sort_unstable();
            heapsort(&mut items, Ord::cmp);
            prop_assert_eq!(items, expected);
        }
    }
}
