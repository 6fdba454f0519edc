// SPDX-License-Identifier: GPL-2.0-or-later

//! The report as one page without any other file: readable without JavaScript, which only adds sorting, zoom and search.

use std::fmt::Write;

use super::chart;
use super::collect::{Cell, Collected, Percentiles, Table, percentile};
use super::flame::{self, Node};
use super::markup::escape;
use crate::counters::{cycles, missed, number};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// A page is smaller than this.
const MOST_BYTES: usize = 1_000_000;

/// The page. `before`: the recording to compare with, and its name.
pub fn page(collected: &Collected, before: Option<(&str, &Collected)>) -> String {
    // Fewer rows, until it is small enough.
    let mut rows = 500;
    loop {
        let page = with_rows(collected, before, rows);
        if page.len() < MOST_BYTES || rows == 0 {
            return page;
        }
        rows /= 2;
    }
}

fn with_rows(collected: &Collected, before: Option<(&str, &Collected)>, rows: usize) -> String {
    let script = escape(collected.fact("script"));
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{script} - spile</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{script}</h1>\n"
    );
    head(collected, before, &mut html);
    losses(collected, &mut html);
    histograms(collected, before.map(|(_, before)| before), &mut html);
    series(collected, &mut html);
    stacks(collected, before.map(|(_, before)| before), &mut html);
    numbers(collected, before.map(|(_, before)| before), &mut html);
    tables(collected, rows, &mut html);
    cost(collected, &mut html);
    messages(collected, &mut html);
    text(collected, rows, &mut html);
    let _ = write!(html, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

/// `2026-11-27 00:10:05 UTC`
fn date(nanoseconds: i128) -> String {
    // Up to some thousands of years: a recording may say anything.
    let seconds = (nanoseconds / 1_000_000_000).clamp(0, 1 << 38) as i64;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Civil from days: years begin in March, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

fn head(collected: &Collected, before: Option<(&str, &Collected)>, html: &mut String) {
    let mut facts: Vec<(&str, String)> = vec![
        ("host", collected.fact("host").to_string()),
        ("kernel", format!("{} {}", collected.fact("release"), collected.fact("kernel"))),
        ("build-id", collected.fact("build-id").to_string()),
        ("compiled by", format!("spile {}", collected.fact("compiler"))),
    ];
    if let Some((first, last)) = collected.span {
        if collected.realtime > 0 {
            facts.push(("first event", date(collected.realtime.saturating_add(first.into()))));
        }
        facts.push(("duration", format!("{:.3} s", last.saturating_sub(first) as f64 / 1e9)));
    }
    let counts: Vec<String> = collected.counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    facts.push(("events", counts.join(", ")));
    let status = match collected.status {
        Some(status) => format!("ended with status {status}"),
        None => "the recording has no end: the session was killed, or is still running".to_string(),
    };
    facts.push(("session", status));
    if let Some(damage) = &collected.damage {
        facts.push(("recording", damage.clone()));
    }
    if let Some((name, _)) = before {
        facts.push(("compared with", name.to_string()));
    }
    html.push_str("<dl>\n");
    for (name, value) in facts.iter().filter(|(_, value)| !value.trim().is_empty()) {
        let _ = writeln!(html, "<dt>{name}</dt><dd>{}</dd>", escape(value));
    }
    html.push_str("</dl>\n");
}

fn losses(collected: &Collected, html: &mut String) {
    if collected.lost_records() == 0 {
        html.push_str("<p class=\"good\">No record was lost.</p>\n");
        return;
    }
    let cpus: Vec<String> = collected
        .lost
        .iter()
        .filter(|(_, (records, _))| *records > 0)
        .map(|(cpu, (records, bytes))| format!("CPU {cpu}: {records} ({bytes} bytes)"))
        .collect();
    let _ = writeln!(
        html,
        "<p class=\"bad\"><strong>{} records were lost</strong>, so that all numbers below are too small: {}. A larger buffer is <code>-s MB</code>.</p>",
        collected.lost_records(),
        cpus.join(", ")
    );
}

fn histograms(collected: &Collected, before: Option<&Collected>, html: &mut String) {
    for all in collected.histograms() {
        let Some((_, counts)) = all.times.last() else { continue };
        let _ = writeln!(html, "<section>\n<h2>{}</h2>", escape(&all.name));
        let shares = |counts: &[u64]| {
            let at = |percent| {
                percentile(all.kind, counts, percent).map_or("-".to_string(), |value| chart::short(value.into()))
            };
            let sum: u128 = counts.iter().map(|count| u128::from(*count)).sum();
            format!("{sum} values; up to {} are 50 %, {} 90 %, {} 99 %", at(50), at(90), at(99))
        };
        let _ = writeln!(html, "<p>{}</p>", shares(counts));
        let old =
            before.and_then(|before| before.histograms().find(|old| old.name == all.name && old.kind == all.kind));
        if let Some((_, old)) = old.and_then(|old| old.times.last()) {
            let _ = writeln!(html, "<p>before: {}</p>", shares(old));
        }
        html.push_str(&chart::histogram(&all.name, all.kind, counts));
        if all.times.len() > 1 {
            let start = collected.span.map_or(0, |(first, _)| first);
            html.push_str("<h3>over time</h3>\n");
            html.push_str(&chart::heat_map(&all.name, all.kind, &all.times, start));
        }
        html.push_str("</section>\n");
    }
}

fn series(collected: &Collected, html: &mut String) {
    let start = collected.span.map_or(0, |(first, _)| first);
    for table in collected.tables().filter(|table| table.is_series()) {
        let columns: Vec<(&String, Vec<(u64, i128)>)> =
            table.names.iter().enumerate().map(|(index, name)| (name, table.numbers(index))).collect();
        let charts = columns.iter().filter(|(_, points)| points.len() >= 3);
        let charts: Vec<String> = charts
            .map(|(name, points)| format!("<h3>{}</h3>\n{}", escape(name), chart::series(name, points, start)))
            .collect();
        if !charts.is_empty() {
            let _ =
                writeln!(html, "<section>\n<h2>{} over time</h2>\n{}</section>", escape(&table.probe), charts.concat());
        }
    }
}

fn stacks(collected: &Collected, before: Option<&Collected>, html: &mut String) {
    let old = before.into_iter().flat_map(|before| before.stacks.counts());
    let root = Node::of(collected.stacks.counts(), old);
    let svg = flame::svg(&root, before.is_some());
    if svg.is_empty() {
        return;
    }
    let colours =
        if before.is_some() { " Red frames have a larger share than before, blue ones a smaller one." } else { "" };
    let _ = writeln!(
        html,
        "<section>\n<h2>Stacks</h2>\n<p>{} samples. A frame is as wide as the number of samples in it and in what it calls; its callers are below it.{colours}</p>\n\
         <p class=\"js\" hidden><label>Search <input id=\"search\" type=\"search\"></label> <span id=\"found\" role=\"status\"></span> <button id=\"reset\" type=\"button\">Show all</button></p>\n\
         <div class=\"flame\">{svg}</div>\n<p id=\"frame\" role=\"status\"></p>\n</section>",
        root.count
    );
}

/// Percentiles of all columns with numbers.
fn numbers(collected: &Collected, before: Option<&Collected>, html: &mut String) {
    let percentiles = |table: &Table, column| {
        let numbers: Vec<i128> = table.numbers(column).into_iter().map(|(_, number)| number).collect();
        Percentiles::of(numbers).filter(|found| found.count > 1)
    };
    let mut rows = String::new();
    for table in collected.tables() {
        for (column, name) in table.names.iter().enumerate() {
            let Some(found) = percentiles(table, column) else { continue };
            let old = before.and_then(|before| {
                let same = before.tables().find(|old| old.probe == table.probe && old.names == table.names)?;
                percentiles(same, column)
            });
            let _ = write!(rows, "<tr><td>{}</td><td>{}</td>", escape(name), escape(&table.probe));
            let cells = [
                (found.count as i128, old.map(|old| old.count as i128)),
                (found.min, old.map(|old| old.min)),
                (found.p50, old.map(|old| old.p50)),
                (found.p90, old.map(|old| old.p90)),
                (found.p99, old.map(|old| old.p99)),
                (found.max, old.map(|old| old.max)),
            ];
            for (now, old) in cells {
                let was = old.map_or(String::new(), |old| format!(" <small>was {old}</small>"));
                let _ = write!(rows, "<td class=\"n\" data-v=\"{now}\">{now}{was}</td>");
            }
            rows.push_str("</tr>\n");
        }
    }
    if !rows.is_empty() {
        html.push_str("<section>\n<h2>Numbers</h2>\n");
        let head = ["value", "probe", "count", "min", "50 %", "90 %", "99 %", "max"];
        table_of(&head.map(str::to_string), &rows, html);
        html.push_str("</section>\n");
    }
}

fn table_of(head: &[String], rows: &str, html: &mut String) {
    html.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>\n<thead><tr>");
    for name in head {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(name));
    }
    let _ = write!(html, "</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n");
}

fn tables(collected: &Collected, most: usize, html: &mut String) {
    for table in collected.tables() {
        let _ = writeln!(html, "<section>\n<h2>{}</h2>", escape(&table.probe));
        let skipped = table.rows.len().saturating_sub(most);
        if table.count > (table.rows.len() - skipped) as u64 {
            let _ = writeln!(html, "<p>The last {} of {} rows.</p>", table.rows.len() - skipped, table.count);
        }
        let mut rows = String::new();
        for (time, cells) in table.rows.iter().skip(skipped) {
            let start = collected.span.map_or(0, |(first, _)| first);
            let since = time.saturating_sub(start);
            let _ = write!(rows, "<tr><td class=\"n\" data-v=\"{since}\">{:.6}</td>", since as f64 / 1e9);
            for cell in cells {
                match cell {
                    Cell::Number(number) => {
                        let _ = write!(rows, "<td class=\"n\" data-v=\"{number}\">{number}</td>");
                    }
                    Cell::Text(text) => {
                        let _ = write!(rows, "<td>{}</td>", escape(text));
                    }
                }
            }
            rows.push_str("</tr>\n");
        }
        let head: Vec<String> = std::iter::once("time (s)".to_string()).chain(table.names.iter().cloned()).collect();
        table_of(&head, &rows, html);
        html.push_str("</section>\n");
    }
}

/// The counters of the probes.
fn cost(collected: &Collected, html: &mut String) {
    let probes = collected.stats.as_ref().and_then(|stats| stats.get("probes")).and_then(|probes| probes.as_array());
    let Some(probes) = probes.filter(|probes| !probes.is_empty()) else { return };
    let mut shown: Vec<&serde_json::Value> = probes.iter().collect();
    shown.sort_by_key(|probe| std::cmp::Reverse(number(probe, "hits")));
    let mut rows = String::new();
    for probe in shown.iter().take(200) {
        let text = |name: &str| escape(probe.get(name).and_then(serde_json::Value::as_str).unwrap_or_default());
        let _ = write!(rows, "<tr><td>{}</td><td>{}</td>", text("point"), text("by"));
        let (missed, cycles) = (missed(probe), cycles(probe));
        let all = u128::from(cycles) * u128::from(number(probe, "handled"));
        let cells =
            [number(probe, "hits").into(), number(probe, "handled").into(), u128::from(missed), cycles.into(), all];
        for cell in cells {
            let _ = write!(rows, "<td class=\"n\" data-v=\"{cell}\">{cell}</td>");
        }
        rows.push_str("</tr>\n");
    }
    html.push_str("<section>\n<h2>Cost of the probes</h2>\n");
    if probes.len() > 200 {
        let _ = writeln!(html, "<p>The 200 of {} probes with the most hits.</p>", probes.len());
    }
    let head = ["probe", "by", "hits", "handled", "missed or lost", "cycles of a run", "cycles of all"];
    table_of(&head.map(str::to_string), &rows, html);
    html.push_str("</section>\n");
}

fn messages(collected: &Collected, html: &mut String) {
    if collected.messages.is_empty() {
        return;
    }
    html.push_str("<section>\n<h2>Messages</h2>\n<ul>\n");
    for (kind, text) in &collected.messages {
        let _ = writeln!(html, "<li class=\"{kind}\">{kind}: {}</li>", escape(text));
    }
    html.push_str("</ul>\n</section>\n");
}

fn text(collected: &Collected, rows: usize, html: &mut String) {
    if collected.text.is_empty() || rows == 0 {
        return;
    }
    let cut = if collected.is_cut { " (its beginning)" } else { "" };
    let _ = writeln!(
        html,
        "<section>\n<h2>Output{cut}</h2>\n<details><summary>What the script printed</summary><pre tabindex=\"0\">{}</pre></details>\n</section>",
        escape(&String::from_utf8_lossy(&collected.text))
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_399_000_000_000), "2000-02-28 23:59:59 UTC");
        assert_eq!(date(1_709_164_800_000_000_000), "2024-02-29 00:00:00 UTC");
        assert_eq!(date(1_795_735_878_932_177_102), "2026-11-26 23:31:18 UTC");
    }

    #[test]
    fn texts_cannot_leave_their_place() {
        assert_eq!(escape("<script>'\"&\u{202e}\x1b"), "&lt;script&gt;&#39;&quot;&amp;\\u{202e}\\u{1b}");
        let mut collected = Collected::default();
        collected.about = vec![("script".into(), "</title><script>alert(1)</script>".into())];
        collected.messages = vec![("warning", "<img src=x onerror=alert(1)>".into())];
        collected.text = b"</pre><script>alert(2)</script>".to_vec();
        let page = page(&collected, None);
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(!page.contains("<img") && !page.contains("http://") && !page.contains("https://"));
    }
}
