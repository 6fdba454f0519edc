// SPDX-License-Identifier: GPL-2.0-or-later

//! The report as text for a terminal: histograms and series by block characters, as wide as the terminal.

use std::fmt::Write;

use spile_abi::escape;

use super::chart;
use super::collect::{Collected, Percentiles, percentile};

/// Lines of a table.
const MOST_ROWS: usize = 20;

/// The text; `columns`: of the terminal; `colour`: escape sequences are wanted.
pub fn text(collected: &Collected, columns: usize, colour: bool) -> String {
    let columns = columns.clamp(20, 400);
    let (bold, plain, blue) = if colour { ("\x1b[1m", "\x1b[0m", "\x1b[34m") } else { ("", "", "") };
    let mut text = String::new();
    let heading = |title: &str| format!("\n{bold}{}{plain}\n", cut(&escape::line(title), columns));
    let duration = collected.span.map_or(0, |(first, last)| last.saturating_sub(first));
    let head = format!(
        "{} on {} ({}), {:.3} s",
        collected.fact("script"),
        collected.fact("host"),
        collected.fact("release"),
        duration as f64 / 1e9
    );
    let _ = writeln!(text, "{bold}{}{plain}", cut(&escape::line(&head), columns));
    match collected.lost_records() {
        0 => text.push_str("no record was lost\n"),
        lost => {
            let _ = writeln!(text, "{lost} RECORDS WERE LOST");
        }
    }
    for all in collected.histograms() {
        let Some((_, counts)) = all.times.last() else { continue };
        text.push_str(&heading(&all.name));
        let rows = chart::rows(all.kind, counts);
        let label = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        let number = rows.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(0);
        let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
        let room = columns.saturating_sub(label + number + 4).max(1);
        for (name, count) in &rows {
            let bar = bar(*count as f64 / most as f64, room);
            let pad = room - bar.chars().count();
            let _ = writeln!(text, "{name:>label$} │{blue}{bar}{plain}{}│{count:>number$}", " ".repeat(pad));
        }
        let at =
            |percent| percentile(all.kind, counts, percent).map_or("-".to_string(), |value| chart::short(value.into()));
        let _ = writeln!(text, "{}", cut(&format!("50 % up to {}, 90 % {}, 99 % {}", at(50), at(90), at(99)), columns));
    }
    for table in collected.tables() {
        text.push_str(&heading(&table.probe));
        for (column, name) in table.names.iter().enumerate() {
            let points = table.numbers(column);
            if table.is_series() && points.len() >= 3 {
                let _ = writeln!(text, "{}", cut(&escape::line(name), columns));
                let _ = writeln!(text, "{blue}{}{plain}", spark(&points, columns));
            }
            let numbers: Vec<i128> = points.iter().map(|(_, number)| *number).collect();
            if let Some(found) = Percentiles::of(numbers).filter(|found| found.count > 1) {
                let Percentiles { count, min, p50, p90, p99, max } = found;
                let line = format!(
                    "{}: {count} values, min {}, 50 % {}, 90 % {}, 99 % {}, max {}",
                    escape::line(name),
                    chart::short(min),
                    chart::short(p50),
                    chart::short(p90),
                    chart::short(p99),
                    chart::short(max)
                );
                let _ = writeln!(text, "{}", cut(&line, columns));
            }
        }
        if !table.is_series() {
            let _ = writeln!(text, "{}", cut(&escape::line(&table.names.join("  ")), columns));
            for (_, cells) in table.rows.iter().rev().take(MOST_ROWS).rev() {
                let cells: Vec<String> = cells
                    .iter()
                    .map(|cell| match cell {
                        super::collect::Cell::Number(number) => number.to_string(),
                        super::collect::Cell::Text(text) => escape::line(text).into_owned(),
                    })
                    .collect();
                let _ = writeln!(text, "{}", cut(&cells.join("  "), columns));
            }
        }
    }
    let mut stacks: Vec<(&[u8], u64)> = collected.stacks.counts().collect();
    if !stacks.is_empty() {
        stacks.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        text.push_str(&heading("stacks, the most frequent first (-o FILE.html draws them)"));
        for (stack, count) in stacks.into_iter().take(MOST_ROWS) {
            let frames = String::from_utf8_lossy(stack).into_owned();
            let _ = writeln!(text, "{}", cut(&format!("{count} {}", escape::line(&frames)), columns));
        }
    }
    text
}

/// A bar of eighths of columns.
fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).ceil() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.extend(EIGHTHS.get(eighths % 8));
    }
    bar
}

/// A column for each part of the time: the greatest value.
fn spark(points: &[(u64, i128)], columns: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let width = columns.min(points.len()).max(1);
    let values: Vec<i128> = points.iter().map(|(_, value)| *value).collect();
    let low = values.iter().min().copied().unwrap_or(0).min(0);
    let high = values.iter().max().copied().unwrap_or(0).max(low + 1);
    (0..width)
        .filter_map(|column| {
            let part = values.get(column * values.len() / width..((column + 1) * values.len()).div_ceil(width))?;
            let value = part.iter().max()?;
            let level = ((value - low) as f64 / (high - low) as f64 * 7.0).round() as usize;
            LEVELS.get(level.min(7)).copied()
        })
        .collect()
}

/// As many characters as fit.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_string();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_lines_fit_their_columns() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(0.001, 3), "▏");
        let points: Vec<(u64, i128)> = (0..1000).map(|time| (time, i128::from(time))).collect();
        assert_eq!(spark(&points, 8), "▂▃▄▄▅▆▇█");
        assert_eq!(spark(&[(0, 5)], 80).chars().count(), 1);
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}
