// SPDX-License-Identifier: GPL-2.0-or-later

//! `--cache`: lists the entries, shows their size, and removes them.

use std::time::SystemTime;

use clap::ValueEnum;

use spile_base::cache::{Cache, CacheEntry, size_text};

/// What `--cache` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// List the entries, the last used first
    Show,
    /// Print the cache's directory, size and limit
    Size,
    /// Remove the least recently used entries, down to the limit
    Prune,
    /// Remove everything
    Clear,
}

/// Executes it, and returns the lines to print. Err: there is no cache.
pub fn run(action: Action, cache: &Cache) -> Result<Vec<String>, String> {
    let Some(directory) = cache.directory() else {
        let why = cache.take_notices();
        return Err(if why.is_empty() {
            "there is no cache: neither SPILE_CACHE_DIR, XDG_CACHE_HOME nor HOME is set".into()
        } else {
            why.join("; ")
        });
    };
    let removed = |(count, bytes): (usize, u64)| vec![format!("removed {count} entries, {}", size_text(bytes))];
    Ok(match action {
        Action::Show => cache.list().iter().map(line).collect(),
        Action::Size => {
            let entries = cache.list().len();
            vec![format!(
                "{}: {entries} entries, {} of at most {}",
                directory.display(),
                size_text(cache.size()),
                size_text(cache.limit())
            )]
        }
        Action::Prune => removed(cache.prune(cache.limit())),
        Action::Clear => removed(cache.clear()),
    })
}

fn line(entry: &CacheEntry) -> String {
    let age = SystemTime::now().duration_since(entry.used).unwrap_or_default().as_secs();
    let age = match age {
        0..60 => format!("{age} s"),
        60..3600 => format!("{} min", age / 60),
        3600..172_800 => format!("{} h", age / 3600),
        _ => format!("{} d", age / 86_400),
    };
    let key = entry.path.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "{:8} {:>10} {:>7} ago  {}  {}",
        entry.kind.name(),
        size_text(entry.size),
        age,
        key.get(..12).unwrap_or(&key),
        entry.about
    )
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;
    use spile_base::cache::{Entry, Key, Kind, Settings};

    #[test]
    fn shown_and_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("cache");
        let cache = Cache::open(&Settings { directory: Some(place.clone()), limit: 1 << 20, poisoned: false });
        cache.put(Kind::Module, &Key::new(Sha256::new()), &Entry::new("x.stp for 6.1"));
        let shown = run(Action::Show, &cache).unwrap();
        assert_eq!(shown.len(), 1);
        assert!(
            shown[0].starts_with("module ") && shown[0].ends_with("ago  e3b0c44298fc  x.stp for 6.1"),
            "{}",
            shown[0]
        );
        assert_eq!(run(Action::Prune, &cache).unwrap(), ["removed 0 entries, 0 bytes"]);
        assert!(run(Action::Clear, &cache).unwrap()[0].starts_with("removed 1 entries, "));
        assert_eq!(
            run(Action::Size, &cache).unwrap(),
            [format!("{}: 0 entries, 0 bytes of at most 1.0 MiB", place.display())]
        );
        assert!(run(Action::Size, &Cache::none()).is_err());
    }
}
