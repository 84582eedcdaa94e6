//! Pages of running measurements. Browsers reload such a page after each sample. Each page is rendered once and cached
//! for all viewers until the store changes.

use crate::answer::{Answer, Refusal};
use crate::site::Site;
use crate::store_access::ContentMark;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of cached pages. If a further page is needed, the cache is emptied first.
const MOST_PAGES: usize = 16;
/// Maximum age of a cached page. The page must be rendered again even if the store is unchanged, because it contains
/// times such as "3 min ago".
const LONGEST: Duration = Duration::from_secs(10);

/// A rendered page, with the state of the store from which it was rendered.
#[derive(Debug)]
struct DrawnPage {
    mark: ContentMark,
    drawn: Instant,
    answer: Answer,
}

/// Cache entry of one page. The entry is locked while its page is rendered, so that simultaneous requests wait for the
/// result.
type PagePlace = Arc<Mutex<Option<DrawnPage>>>;

/// Cached pages by their addresses.
#[derive(Debug, Default)]
pub(crate) struct DrawnPages(Mutex<HashMap<String, PagePlace>>);

impl DrawnPages {
    /// Returns the cached page of an address; without a valid one, calls `draw`. Caches only an answer that [is
    /// live](Answer::is_live).
    ///
    /// # Errors
    /// The errors of `draw`.
    pub(crate) fn get_or_draw(
        &self,
        site: &Site,
        address: String,
        draw: impl FnOnce() -> Result<Answer, Refusal>,
    ) -> Result<Answer, Refusal> {
        let place = self.find_place(address);
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = site.store.mark().ok();
        if let (Some(page), Some(mark)) = (&*place, &mark)
            && page.mark == *mark
            && page.drawn.elapsed() < LONGEST
        {
            return Ok(page.answer.clone());
        }
        // A refusal leaves no page.
        *place = None;
        let answer = draw()?;
        if let Some(mark) = mark.filter(|_| answer.is_live) {
            *place = Some(DrawnPage {
                mark,
                drawn: Instant::now(),
                answer: answer.clone(),
            });
        }
        Ok(answer)
    }

    fn find_place(&self, address: String) -> PagePlace {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MOST_PAGES && !places.contains_key(&address) {
            places.clear();
        }
        places.entry(address).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo_fleet::sample_run;
    use crate::site::SiteOptions;
    use assay_store::Store;
    use std::cell::Cell;

    #[test]
    fn a_live_page_is_drawn_again_only_after_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let mut store = Store::open(&path).unwrap();
        let (mut run, samples) = sample_run(jiff::Timestamp::now());
        store.create_run(&mut run).unwrap();
        let site = Site::new(SiteOptions::of_test(dir.path())).unwrap();
        let (pages, drawn) = (DrawnPages::default(), Cell::new(0));
        let get = |address: &str, is_live: bool| {
            let answer = pages.get_or_draw(&site, address.to_owned(), || {
                drawn.set(drawn.get() + 1);
                Ok(Answer {
                    is_live,
                    ..Answer::page(drawn.get().to_string())
                })
            });
            answer.unwrap().body
        };
        assert_eq!([get("a", true), get("a", true)], ["1", "1"]);
        assert_eq!(get("b", true), "2");
        store.add_sample(run.id, &samples[0]).unwrap();
        assert_eq!([get("a", false), get("a", false)], ["3", "4"]);
        for number in 0..100 {
            get(&number.to_string(), true);
        }
        assert!(pages.0.lock().unwrap().len() <= MOST_PAGES);
    }

    #[test]
    fn attack_a_page_that_cannot_be_drawn_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let site = Site::new(SiteOptions::of_test(dir.path())).unwrap();
        let pages = DrawnPages::default();
        for _ in 0..2 {
            let answer = pages.get_or_draw(&site, "a".to_owned(), || Err(Refusal::missing("no")));
            assert!(answer.is_err());
        }
    }
}
