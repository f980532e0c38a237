use super::*;
use crate::store::{KeyBuilder, Store};
use sandbox_core::InputFile;
use std::collections::BTreeSet;

use tempfile::TempDir;

/// So large that an entry's header hardly counts.
const CONTENT: usize = 10_000;

fn store(most: u64) -> (TempDir, Store) {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open_in(root.path(), ByteSize::bytes(most)).unwrap();
    (root, store)
}

fn key(index: u64) -> Key {
    KeyBuilder::new("test").part("index", index.to_le_bytes()).finish()
}

fn compiled(index: u64) -> Arc<Compiled> {
    let mut contents = index.to_le_bytes().to_vec();
    contents.resize(CONTENT, b'x');
    let file = InputFile { path: "program".parse().unwrap(), contents, executable: true };
    let artefacts = Artefacts { key: Some(key(index).to_string()), files: vec![file] };
    Arc::new(Compiled {
        artefacts: Arc::new(artefacts),
        stderr: b"warning".to_vec(),
        ..Compiled::default()
    })
}

fn temporary_files(store: &Store) -> usize {
    fs::read_dir(store.path().join("temporary")).unwrap().count()
}

/// Says when an entry was last used, in seconds after the epoch.
fn set_used(cache: &CompiledCache, index: u64, seconds: u64) {
    let file = File::open(cache.path_of(None, &key(index))).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

fn kept(cache: &CompiledCache, indices: std::ops::Range<u64>) -> BTreeSet<u64> {
    indices.filter(|index| cache.path_of(None, &key(*index)).exists()).collect()
}

#[test]
fn what_is_put_is_found_also_when_opened_anew() {
    let (root, store) = store(1 << 20);
    assert_eq!(store.compiled().get(None, &key(1)), None);
    store.compiled().put(None, &key(1), &compiled(1)).unwrap();
    assert_eq!(store.compiled().get(None, &key(1)), Some(compiled(1)));
    assert_eq!(store.compiled().get(None, &key(2)), None);
    assert_eq!(temporary_files(&store), 0);
    let again = Store::open_in(root.path(), ByteSize::mib(1)).unwrap();
    assert_eq!(again.compiled().get(None, &key(1)), Some(compiled(1)));
}

#[test]
fn the_last_one_put_counts() {
    let (_root, store) = store(1 << 20);
    store.compiled().put(None, &key(1), &compiled(1)).unwrap();
    store.compiled().put(None, &key(1), &compiled(2)).unwrap();
    let found = store.compiled().get(None, &key(1)).unwrap();
    assert_eq!(found.artefacts.files, compiled(2).artefacts.files);
    assert_eq!(store.compiled().usage().unwrap().entries, 1);
}

#[test]
fn a_damaged_entry_is_a_miss_and_goes() {
    let (_root, store) = store(1 << 20);
    let cache = store.compiled();
    let path = cache.path_of(None, &key(1));
    for damage in [
        |bytes: &mut Vec<u8>| bytes.truncate(CONTENT),
        |bytes: &mut Vec<u8>| bytes.clear(),
        |bytes: &mut Vec<u8>| bytes[CONTENT] ^= 1,
    ] {
        cache.put(None, &key(1), &compiled(1)).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.get(None, &key(1)), None);
        assert!(!path.exists());
    }
}

#[test]
fn an_entry_under_a_name_that_is_not_its_own_is_a_miss() {
    let (_root, store) = store(1 << 20);
    let cache = store.compiled();
    cache.put(None, &key(1), &compiled(1)).unwrap();
    let wrong = cache.path_of(None, &key(2));
    make_parent(&wrong).unwrap();
    fs::rename(cache.path_of(None, &key(1)), &wrong).unwrap();
    assert_eq!(cache.get(None, &key(2)), None);
}

#[test]
fn what_a_killed_writer_leaves_is_no_entry_and_goes_after_a_while() {
    let (_root, store) = store(1 << 20);
    let cache = store.compiled();
    // The whole entry was written, and the process ended before the rename.
    let left = store.path().join("temporary/compiled-left");
    let mut file = File::create(&left).unwrap();
    Encoded::new(&key(1), &compiled(1)).write_to(&mut file).unwrap();
    assert_eq!(cache.get(None, &key(1)), None);
    assert_eq!(cache.usage().unwrap(), Usage::default());
    cache.put(None, &key(2), &compiled(2)).unwrap();
    assert!(left.exists(), "it may still be written");
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    cache.put(None, &key(3), &compiled(3)).unwrap();
    assert!(!left.exists());
}

#[test]
fn the_least_recently_used_go_first() {
    // Ten entries fit, with a little to spare.
    let most = 10 * CONTENT as u64 + 5_000;
    let (_root, store) = store(most);
    let cache = store.compiled();
    for index in 0..10 {
        cache.put(None, &key(index), &compiled(index)).unwrap();
        set_used(cache, index, 1_000 + index);
    }
    assert_eq!(kept(cache, 0..10).len(), 10);
    // The oldest is used again, so the ones after it are the oldest now.
    assert!(cache.get(None, &key(0)).is_some());
    cache.put(None, &key(10), &compiled(10)).unwrap();
    assert_eq!(kept(cache, 0..11), BTreeSet::from([0, 3, 4, 5, 6, 7, 8, 9, 10]));
    assert!(cache.usage().unwrap().bytes <= most / 10 * 9);
}

#[test]
fn the_bound_holds_when_the_count_is_lost_or_wrong() {
    let most = 10 * CONTENT as u64 + 5_000;
    for count in [&b""[..], b"nonsense", b"99999999999999999999\n"] {
        let (_root, store) = store(most);
        let cache = store.compiled();
        for index in 0..10 {
            cache.put(None, &key(index), &compiled(index)).unwrap();
            set_used(cache, index, 1_000 + index);
        }
        fs::write(store.path().join("locks/compiled"), count).unwrap();
        cache.put(None, &key(10), &compiled(10)).unwrap();
        assert_eq!(kept(cache, 0..11), (2..11).collect());
    }
}

#[test]
fn a_smaller_bound_is_met_by_the_next_put() {
    let (root, store) = store(1 << 20);
    for index in 0..10 {
        store.compiled().put(None, &key(index), &compiled(index)).unwrap();
    }
    let most = 5 * CONTENT as u64;
    let smaller = Store::open_in(root.path(), ByteSize::bytes(most)).unwrap();
    smaller.compiled().put(None, &key(10), &compiled(10)).unwrap();
    assert!(smaller.compiled().usage().unwrap().bytes <= most);
    assert_eq!(smaller.compiled().get(None, &key(10)), Some(compiled(10)));
}

#[test]
fn an_entry_that_would_take_too_much_room_is_not_kept() {
    let (_root, store) = store(4 * CONTENT as u64);
    store.compiled().put(None, &key(1), &compiled(1)).unwrap();
    assert_eq!(store.compiled().usage().unwrap(), Usage::default());
}

#[test]
fn a_cache_of_size_zero_is_off_but_can_be_cleared() {
    let (root, store) = store(1 << 20);
    store.compiled().put(None, &key(1), &compiled(1)).unwrap();
    let off = Store::open_in(root.path(), ByteSize::bytes(0)).unwrap();
    assert_eq!(off.compiled().get(None, &key(1)), None);
    off.compiled().put(None, &key(2), &compiled(2)).unwrap();
    assert_eq!(off.compiled().clear().unwrap().entries, 1);
}

#[test]
fn clearing_says_what_was_there() {
    let (_root, store) = store(1 << 20);
    let cache = store.compiled();
    for index in 0..3 {
        cache.put(None, &key(index), &compiled(index)).unwrap();
    }
    let before = cache.usage().unwrap();
    assert_eq!(before.entries, 3);
    assert!(before.bytes > 3 * CONTENT as u64);
    assert_eq!(cache.clear().unwrap(), before);
    assert_eq!(cache.usage().unwrap(), Usage::default());
    assert_eq!(cache.get(None, &key(0)), None);
}

#[test]
fn many_at_once_see_whole_entries_and_keep_the_bound() {
    // Each thread has opened the store for itself, as a process would. There is not room for all.
    let most = 20 * CONTENT as u64;
    let (root, store) = store(most);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let root = root.path();
            scope.spawn(move || {
                let store = Store::open_in(root, ByteSize::bytes(most)).unwrap();
                for round in 0..100 {
                    let index = (round * 7 + thread * 3) % 40;
                    match store.compiled().get(None, &key(index)) {
                        Some(found) => assert_eq!(found, compiled(index)),
                        None => store.compiled().put(None, &key(index), &compiled(index)).unwrap(),
                    }
                }
            });
        }
    });
    let usage = store.compiled().usage().unwrap();
    assert!(usage.entries > 0 && usage.bytes <= most, "{usage:?}");
    assert_eq!(temporary_files(&store), 0);
}

#[test]
fn owners_have_entries_of_their_own() {
    let (_root, store) = store(1 << 20);
    let cache = store.compiled();
    for (owner, index) in [(None, 1), (Some("a"), 2), (Some("../b"), 3)] {
        cache.put(owner, &key(index), &compiled(index)).unwrap();
    }
    for owner in [None, Some("a"), Some("../b"), Some("")] {
        for (index, its) in [(1, None), (2, Some("a")), (3, Some("../b"))] {
            assert_eq!(cache.get(owner, &key(index)).is_some(), owner == its, "{owner:?} {index}");
        }
    }
    assert_eq!(cache.usage().unwrap().entries, 3);
    assert_eq!(cache.clear().unwrap().entries, 3);
}

#[test]
fn one_owner_cannot_drive_out_what_is_anothers() {
    let (_root, store) = store(10 * CONTENT as u64 + 5_000);
    let cache = store.compiled();
    let set_used = |owner, index, seconds| {
        let file = File::open(cache.path_of(owner, &key(index))).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    };
    // What the quiet ones have was used before anything of the greedy one's.
    for (owner, index) in [(None, 1), (Some("quiet"), 2), (Some("quiet"), 3)] {
        cache.put(owner, &key(index), &compiled(index)).unwrap();
        set_used(owner, index, index);
    }
    for index in 10..40 {
        cache.put(Some("greedy"), &key(index), &compiled(index)).unwrap();
        set_used(Some("greedy"), index, 1_000 + index);
    }
    for (owner, index) in [(None, 1), (Some("quiet"), 2), (Some("quiet"), 3)] {
        assert!(cache.path_of(owner, &key(index)).exists(), "{owner:?} {index}");
    }
    assert!(cache.path_of(Some("greedy"), &key(39)).exists());
    assert!(!cache.path_of(Some("greedy"), &key(10)).exists());
}
