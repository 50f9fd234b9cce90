//! API keys in memory and in SQLite.

use std::sync::Arc;

use store::memory::MemoryKeys;
use store::sqlite::SqliteJournal;
use tenancy::KeyStore;
use testkit::conformance::keys;

#[tokio::test]
async fn memory_passes_the_key_suite() {
    keys::suite(|| async { Arc::new(MemoryKeys::default()) as Arc<dyn KeyStore> }).await;
}

#[tokio::test]
async fn sqlite_passes_the_key_suite() {
    let folder = tempfile::tempdir().unwrap();
    let counter = std::sync::atomic::AtomicU32::new(0);
    let open = || {
        let number = counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = folder.path().join(format!("{number}.db"));
        async move { Arc::new(SqliteJournal::open(&path).await.unwrap().keys()) as Arc<dyn KeyStore> }
    };
    keys::suite(open).await;
    let path = folder.path().join("again.db");
    let reopen = || {
        let path = path.clone();
        async move { Arc::new(SqliteJournal::open(&path).await.unwrap().keys()) as Arc<dyn KeyStore> }
    };
    keys::reopening(reopen).await;
}
