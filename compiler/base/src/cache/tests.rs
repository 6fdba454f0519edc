// SPDX-License-Identifier: GPL-2.0-or-later

use std::os::unix::fs::PermissionsExt;

use super::*;

fn cache(directory: &Path, limit: u64) -> Cache {
    Cache::open(&Settings { directory: Some(directory.to_path_buf()), limit, poisoned: false })
}

fn key(text: &str) -> Key {
    Key::new(Sha256::new_with_prefix(text))
}

fn private() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

#[test]
fn an_entry_comes_back() {
    let directory = private();
    let cache = cache(directory.path(), 1 << 20);
    let entry =
        Entry::new("an object\nof two lines").with("o", vec![0, 1, 255]).with("text", "x").with("include/a.h", "");
    assert_eq!(cache.get(Kind::Embedded, &key("a")), None);
    assert!(cache.put(Kind::Embedded, &key("a"), &entry));
    assert_eq!(cache.get(Kind::Embedded, &key("a")), Some(entry.clone()));
    assert_eq!(cache.get(Kind::Module, &key("a")), None);
    assert_eq!(entry.about(), "an object of two lines");
    assert_eq!(entry.names_below("include/").collect::<Vec<_>>(), ["a.h"]);
    let mut entry = entry;
    assert_eq!(entry.take_below("include/"), [("a.h".to_string(), Vec::new())]);
    assert_eq!((entry.take("o"), entry.take("o")), (Some(vec![0, 1, 255]), None));
    assert_eq!(cache.take_notices(), [] as [String; 0]);
}

#[test]
fn a_damaged_entry_is_not_used() {
    let directory = private();
    let cache = cache(directory.path(), 1 << 20);
    let entry = Entry::new("about").with("part", vec![7; 100]);
    let path = cache.path(Kind::Runtime, &key("a")).unwrap();
    assert!(cache.put(Kind::Runtime, &key("a"), &entry));
    let whole = std::fs::read(&path).unwrap();
    for damage in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[damage] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(cache.get(Kind::Runtime, &key("a")), None, "byte {damage}");
        std::fs::write(&path, &whole[..damage]).unwrap();
        assert_eq!(cache.get(Kind::Runtime, &key("a")), None, "cut at {damage}");
        assert!(!path.exists());
    }
    assert_eq!(cache.take_notices().len(), 2 * whole.len());
}

#[test]
fn the_longest_unused_goes_first() {
    let directory = private();
    let cache = cache(directory.path(), 10_000);
    let entry = Entry::new("x").with("part", vec![0; 3000]);
    for (age, name) in [(300, "a"), (200, "b"), (100, "c")] {
        assert!(cache.put(Kind::Module, &key(name), &entry));
        let file = File::open(cache.path(Kind::Module, &key(name)).unwrap()).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    assert!(cache.get(Kind::Module, &key("a")).is_some());
    assert!(cache.put(Kind::Index, &key("d"), &entry));
    let left: Vec<PathBuf> = cache.list().into_iter().map(|listed| listed.path).collect();
    assert_eq!(left.len(), 2);
    assert!(
        left.contains(&cache.path(Kind::Index, &key("d")).unwrap())
            && left.contains(&cache.path(Kind::Module, &key("a")).unwrap())
    );
    assert_eq!(cache.clear().0, 2);
    assert_eq!(cache.size(), 0);
}

#[test]
fn one_that_is_larger_than_the_bound_still_serves_its_writer() {
    let directory = private();
    let cache = cache(directory.path(), 100);
    assert!(cache.put(Kind::Module, &key("a"), &Entry::new("x").with("part", vec![0; 3000])));
    assert!(cache.get(Kind::Module, &key("a")).is_some());
}

#[test]
fn poisoned_is_written_and_not_read() {
    let directory = private();
    let poisoned = Cache::open(&Settings { directory: Some(directory.path().into()), limit: 1 << 20, poisoned: true });
    assert!(poisoned.put(Kind::Module, &key("a"), &Entry::new("x")));
    assert_eq!(poisoned.get(Kind::Module, &key("a")), None);
    assert!(cache(directory.path(), 1 << 20).get(Kind::Module, &key("a")).is_some());
}

#[test]
fn a_directory_that_others_can_write_is_not_used() {
    let directory = private();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let cache = cache(directory.path(), 1 << 20);
    assert!(cache.directory().is_none());
    assert!(!cache.put(Kind::Module, &key("a"), &Entry::new("x")));
    assert!(cache.take_notices()[0].contains("others can write there (mode 777)"));
}

/// Root may have the home of a user, whose link leads where that user likes.
#[test]
fn nothing_is_made_through_a_link_of_another_user() {
    let (home, elsewhere) = (private(), private());
    std::os::unix::fs::symlink(elsewhere.path(), home.path().join(".cache")).unwrap();
    // Only root can change its owner.
    if std::os::unix::fs::chown(home.path(), Some(12345), None).is_err() {
        return;
    }
    let cache = cache(&home.path().join(".cache/spile"), 1 << 20);
    assert!(cache.directory().is_none() && cache.take_notices()[0].contains("belongs to user 12345"));
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

/// In each of them another user could have placed a module.
#[test]
fn what_others_can_write_below_is_not_used() {
    let directory = private();
    let entry = Entry::new("x");
    let below = |kind: Kind| directory.path().join(kind.name());
    for kind in [Kind::Module, Kind::Runtime, Kind::Embedded] {
        assert!(cache(directory.path(), 1 << 20).put(kind, &key("a"), &entry));
    }
    std::fs::set_permissions(below(Kind::Module), std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::rename(below(Kind::Runtime), directory.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", below(Kind::Runtime)).unwrap();
    // Only root can change its owner.
    let given = std::os::unix::fs::chown(below(Kind::Embedded), Some(12345), None).is_ok();
    let cache = cache(directory.path(), 1 << 20);
    for kind in [Kind::Module, Kind::Runtime] {
        assert!(
            cache.get(kind, &key("a")).is_none()
                && !cache.put(kind, &key("a"), &entry)
                && cache.lock(kind, &key("a"), "it").is_none()
        );
    }
    assert_eq!(cache.get(Kind::Embedded, &key("a")).is_none(), given);
    let notices = cache.take_notices().join("\n");
    assert!(notices.contains("module is not used: others can write there (mode 777); remove it"), "{notices}");
    assert!(notices.contains("runtime is not used: it is not a directory"), "{notices}");
    assert!(!given || notices.contains("embedded is not used: it belongs to user 12345"), "{notices}");
    assert!(cache.put(Kind::Index, &key("a"), &entry));
}

#[test]
fn an_entry_that_others_could_have_written_is_made_again() {
    let directory = private();
    let cache = cache(directory.path(), 1 << 20);
    let path = cache.path(Kind::Module, &key("a")).unwrap();
    let made = || assert!(cache.put(Kind::Module, &key("a"), &Entry::new("x")));
    made();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(cache.get(Kind::Module, &key("a")).is_none() && !path.exists());
    made();
    let other = directory.path().join("other");
    std::fs::rename(&path, &other).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    assert!(cache.get(Kind::Module, &key("a")).is_none() && std::fs::symlink_metadata(&path).is_err());
    made();
    if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
        assert!(!cache.use_file(Kind::Module, &key("a")) && cache.get(Kind::Module, &key("a")).is_none());
    }
    made();
    assert!(cache.get(Kind::Module, &key("a")).is_some());
    assert!(cache.take_notices().iter().any(|notice| notice.contains("it is a symbolic link; it is made again")));
}

#[test]
fn a_directory_that_others_can_exchange_is_not_used() {
    let above = private();
    std::fs::set_permissions(above.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = cache(&above.path().join("cache"), 1 << 20);
    assert!(refused.directory().is_none());
    assert!(refused.take_notices()[0].contains("which it is in (mode 777)"));
    assert_eq!(check_scratch_parent(above.path()).is_err(), nix::unistd::geteuid().is_root());
    // As /tmp.
    std::fs::set_permissions(above.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(cache(&above.path().join("cache"), 1 << 20).directory().is_some());
    assert_eq!(check_scratch_parent(above.path()), Ok(()));
    if std::os::unix::fs::chown(above.path(), Some(12345), None).is_ok() {
        let refused = cache(&above.path().join("cache"), 1 << 20);
        assert!(refused.directory().is_none() && refused.take_notices()[0].contains("belongs to user 12345"));
        assert!(check_scratch_parent(above.path()).unwrap_err().contains("belongs to user 12345"));
    }
}

#[test]
fn a_place_that_cannot_be_made_is_said() {
    let directory = private();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let cache = cache(&directory.path().join("file/cache"), 1 << 20);
    assert!(cache.directory().is_none() && cache.lock(Kind::Module, &key("a"), "it").is_none());
    assert_eq!(cache.take_notices().len(), 1);
}

#[test]
fn strays_of_killed_writers_go_when_they_are_old() {
    let directory = private();
    let cache = cache(directory.path(), 1 << 20);
    assert!(cache.put(Kind::Module, &key("a"), &Entry::new("x")));
    let stray = |name: &str, age: u64| {
        let path = directory.path().join("module").join(name);
        File::create(&path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        path
    };
    let (old, young, lock) = (stray(".new-1", 7200), stray(".new-2", 60), stray("aa.lock", 7200));
    cache.prune(1 << 20);
    assert!(!old.exists() && young.exists() && !lock.exists());
    assert_eq!(cache.list().len(), 1);
}

#[test]
fn of_two_that_need_an_entry_one_waits() {
    let directory = private();
    let made = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let cache = cache(directory.path(), 1 << 20);
                let _lock = cache.lock(Kind::Runtime, &key("a"), "it").unwrap();
                if cache.get(Kind::Runtime, &key("a")).is_none() {
                    made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(20));
                    assert!(cache.put(Kind::Runtime, &key("a"), &Entry::new("x")));
                }
            });
        }
    });
    assert_eq!(made.into_inner(), 1);
    assert_eq!(std::fs::read_dir(directory.path().join("runtime")).unwrap().count(), 1);
}

#[test]
fn sizes_are_readable() {
    assert_eq!([size_text(7), size_text(1536), size_text(3 << 30)], ["7 bytes", "1.5 KiB", "3.0 GiB"]);
}

#[test]
fn a_reader_changes_nothing() {
    let directory = private();
    let settings = Settings { directory: Some(directory.path().to_path_buf()), limit: 1 << 20, poisoned: false };
    let entry = Entry::new("about").with("part", vec![7; 100]);
    assert!(Cache::open(&settings).put(Kind::Index, &key("a"), &entry));
    let cache = Cache::open_read_only(&settings);
    assert_eq!(cache.get(Kind::Index, &key("a")), Some(entry.clone()));
    assert!(!cache.put(Kind::Index, &key("b"), &entry) && cache.lock(Kind::Index, &key("b"), "it").is_none());
    let path = cache.path(Kind::Index, &key("a")).unwrap();
    std::fs::write(&path, "damaged").unwrap();
    assert!(cache.get(Kind::Index, &key("a")).is_none() && path.exists());
    let absent = Settings { directory: Some(directory.path().join("none")), ..settings };
    assert!(Cache::open_read_only(&absent).directory().is_none() && !directory.path().join("none").exists());
}

/// KiB of the file that are in the memory of this process.
fn resident(path: &Path) -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = maps.lines().skip_while(|line| !line.ends_with(path.to_str().unwrap()));
    let line = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn reading_a_large_entry_at_few_places_takes_little_memory() {
    let directory = private();
    let cache = cache(directory.path(), 1 << 30);
    assert!(cache.put(Kind::Index, &key("a"), &Entry::new("tables").with("tables", vec![7; 24 << 20])));
    let mapped = cache.map(Kind::Index, &key("a"), "tables", |_| true).unwrap();
    assert!((0..24).all(|at| mapped[at << 20] == 7));
    let taken = resident(&cache.path(Kind::Index, &key("a")).unwrap());
    assert!((96..4 << 10).contains(&taken), "{taken} KiB for 24 bytes");
}
