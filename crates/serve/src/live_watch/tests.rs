use super::*;
use crate::demo_fleet::sample_run;
use crate::site::SiteOptions;
use assay_model::run::{RunId, RunState};
use assay_store::Store;
use tempfile::TempDir;

/// A site over a store that contains a running run with one sample.
struct Scene {
    dir: TempDir,
    site: Arc<Site>,
    store: Store,
    run: RunId,
    samples: Vec<assay_model::Sample>,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("s.db")).unwrap();
        let (mut run, samples) = sample_run(jiff::Timestamp::now());
        (run.state, run.ended) = (RunState::Running, None);
        store.create_run(&mut run).unwrap();
        store.add_sample(run.id, &samples[0]).unwrap();
        Self {
            site: Arc::new(Site::new(SiteOptions::of_test(dir.path())).unwrap()),
            dir,
            store,
            run: run.id,
            samples,
        }
    }

    async fn follow(&self, name: &str) -> watch::Receiver<LiveEvent> {
        let events = follow_record(&self.site, RecordKind::Run, name.to_owned());
        events.await.unwrap()
    }

    fn reads(&self) -> usize {
        self.site.live.lock().reads
    }

    /// Waits until the watcher has read records `count` times.
    async fn wait_for_reads(&self, count: usize) {
        while self.reads() < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

fn text(events: &mut watch::Receiver<LiveEvent>) -> String {
    let event = events.borrow_and_update().clone();
    String::from_utf8(event.bytes.to_vec()).unwrap()
}

#[test]
fn all_streams_of_a_run_share_one_watcher_that_reads_only_changes() {
    let mut scene = Scene::new();
    block_on(async {
        let mut streams = Vec::new();
        for name in ["last", "1"].iter().cycle().take(200) {
            streams.push(scene.follow(name).await);
        }
        assert_eq!(scene.site.live.lock().records.len(), 1);
        assert!(text(&mut streams[0]).contains("\"done\":1"));
        scene.wait_for_reads(1).await;
        // Nothing is written, nothing is read.
        tokio::time::sleep(INTERVAL * 3).await;
        assert_eq!(scene.reads(), 1);
        scene
            .store
            .add_sample(scene.run, &scene.samples[1])
            .unwrap();
        for stream in &mut streams {
            stream.changed().await.unwrap();
            assert!(text(stream).contains("\"done\":2"));
        }
        assert_eq!(scene.reads(), 2);
        // Another run is no change of this one.
        let (mut other, _) = sample_run(jiff::Timestamp::now());
        other.uid = "f".repeat(32);
        scene.store.create_run(&mut other).unwrap();
        scene.wait_for_reads(3).await;
        assert!(!streams[0].has_changed().unwrap());
        let ended = jiff::Timestamp::now();
        let (run, store) = (scene.run, &mut scene.store);
        store.finish(run, RunState::Complete, ended).unwrap();
        streams[7].changed().await.unwrap();
        let event = streams[7].borrow_and_update().clone();
        assert!(event.is_last && event.bytes.starts_with(b"event: end\n"));
        // A watcher without records ends.
        while scene.site.live.lock().has_task {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(scene.site.live.lock().records.is_empty());
    });
}

#[test]
fn a_watcher_ends_with_its_last_stream_and_starts_again() {
    let scene = Scene::new();
    block_on(async {
        for _ in 0..2 {
            let streams = [scene.follow("1").await, scene.follow("1").await];
            assert!(scene.site.live.lock().has_task);
            drop(streams);
            while scene.site.live.lock().has_task {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert!(scene.site.live.lock().records.is_empty());
        }
    });
}

#[test]
fn attack_a_record_that_goes_away_ends_its_streams() {
    let mut scene = Scene::new();
    block_on(async {
        let mut events = scene.follow("1").await;
        scene.store.delete_run(scene.run).unwrap();
        events.changed().await.unwrap();
        assert!(text(&mut events).starts_with("event: gone\n"));
        let again = follow_record(&scene.site, RecordKind::Run, "1".to_owned());
        assert!(again.await.is_err());
        // The whole store is moved away.
        let (mut run, _) = sample_run(jiff::Timestamp::now());
        (run.state, run.ended) = (RunState::Running, None);
        scene.store.create_run(&mut run).unwrap();
        let mut events = scene.follow("last").await;
        let path = scene.dir.path().join("s.db");
        std::fs::rename(&path, scene.dir.path().join("moved.db")).unwrap();
        events.changed().await.unwrap();
        assert!(text(&mut events).starts_with("event: gone\n"));
    });
}
