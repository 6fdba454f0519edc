// SPDX-License-Identifier: GPL-2.0-or-later

//! Draws the state, whatever the size of the terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use spile_abi::escape;

use super::state::{Probe, Sort, State};
use crate::report::short;

/// What the user wants to see.
#[derive(Debug)]
pub struct View {
    /// Of the probes.
    pub sort: Sort,
    /// The other way round.
    pub reverse: bool,
    /// Probes and values with this in their names.
    pub filter: String,
    /// The filter is being typed.
    pub typing: bool,
    /// The keys are shown.
    pub help: bool,
    /// What is shown does not change.
    pub frozen: bool,
    /// Number of the probe that keys act on; `None`: the first one.
    pub selected: Option<usize>,
    /// Without colours.
    pub plain: bool,
    /// An answer to the last key.
    pub note: String,
}

impl View {
    /// At the start.
    pub fn new(plain: bool) -> View {
        View {
            sort: Sort::Rate,
            reverse: false,
            filter: String::new(),
            typing: false,
            help: false,
            frozen: false,
            selected: None,
            plain,
            note: String::new(),
        }
    }

    /// Moves the selection so many probes down (up if negative).
    pub fn select(&mut self, state: &State, by: isize) {
        let shown = state.shown(self.sort, self.reverse, &self.filter);
        let place = self.place(&shown).saturating_add_signed(by).min(shown.len().saturating_sub(1));
        self.selected = shown.get(place).map(|probe| probe.number);
    }

    /// The place of the selected probe among those that are shown; 0 if it is not.
    pub fn place(&self, shown: &[&Probe]) -> usize {
        shown.iter().position(|probe| Some(probe.number) == self.selected).unwrap_or(0)
    }
}

const HELP: [&str; 11] = [
    "s      sort probes: rate, hits, cost, name",
    "r      reverse the order",
    "f      filter probes and values by a part of their names",
    "space  freeze what is shown; the session goes on",
    "w      write a report of what was recorded so far",
    "c      clear the output below",
    "PgUp PgDn, arrows: choose a probe",
    "d      switch the chosen probe off, or on again",
    "q, x   end the session and leave",
    "^C     the same",
    "any key closes this",
];

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &State, view: &View) {
    let area = frame.area();
    let style = |colour: Color| if view.plain { Style::default() } else { Style::default().fg(colour) };
    let bold = Style::default().add_modifier(Modifier::BOLD);
    let rows = usize::from(area.height);
    // The head, and then what has room.
    let probes = (state.shown(view.sort, false, "").len() + 1).min((rows / 3).max(2));
    let values = state.top(rows / 3, &view.filter);
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(if rows >= 3 { probes as u16 } else { 0 }),
        Constraint::Length(if rows >= 8 { values.len() as u16 } else { 0 }),
        Constraint::Min(0),
        Constraint::Length(u16::from(rows >= 4)),
    ]);
    let [head, probe_area, value_area, output, foot] = parts.areas(area);
    let lost = state.collected.lost_records();
    let lost = if lost > 0 { format!(", {lost} LOST") } else { String::new() };
    let doing = match () {
        () if state.over => "over",
        () if view.frozen => "frozen",
        () if state.collected.about.is_empty() => "starting",
        () => "running",
    };
    let seconds = state.collected.span.map_or(0, |(first, last)| last.saturating_sub(first)) / 1_000_000_000;
    let title = format!("{} {doing} {seconds} s, sorted by {}{lost}", state.collected.fact("script"), view.sort.name());
    text(frame, head, &title, bold);
    draw_probes(frame, probe_area, state, view, bold);
    for (row, (label, entry)) in rows_of(value_area).into_iter().zip(&values) {
        let width = usize::from(row.width);
        let number = match &entry.text {
            Some(text) => text.clone(),
            None => short(entry.numbers.back().copied().unwrap_or(0)),
        };
        let numbers: Vec<i128> = entry.numbers.iter().copied().collect();
        let line_width = (width / 4).min(30);
        let label_width = width.saturating_sub(line_width + 12);
        let line = format!("{:<label_width$} {number:>9} {}", cut(label, label_width), spark(&numbers, line_width));
        text(frame, row, &line, style(Color::Cyan));
    }
    let room = usize::from(output.height);
    let skipped = state.lines.len().saturating_sub(room);
    for (row, line) in rows_of(output).into_iter().zip(state.lines.iter().skip(skipped)) {
        text(frame, row, line, Style::default());
    }
    let keys = "q quit  s sort  r reverse  f filter  d off/on  space freeze  w report  h help";
    let shown = match () {
        () if view.typing => format!("filter: {}_", view.filter),
        () if !view.note.is_empty() => view.note.clone(),
        () if !view.filter.is_empty() => format!("only {}  {keys}", view.filter),
        () => keys.to_string(),
    };
    text(frame, foot, &shown, style(Color::Yellow));
    if view.help {
        draw_help(frame, area);
    }
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let height = (HELP.len() as u16 + 2).min(area.height);
    let width = 62.min(area.width);
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let lines: Vec<Line<'_>> = HELP.iter().map(|line| Line::raw(*line)).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::default().borders(Borders::ALL).title("keys")), place);
}

fn draw_probes(frame: &mut Frame<'_>, area: Rect, state: &State, view: &View, bold: Style) {
    let mut rows = rows_of(area).into_iter();
    let width = usize::from(area.width);
    let line_width = if width >= 70 { (width / 5).min(40) } else { 0 };
    let fixed = 10 + 10 + 8 + 9 + line_width + 2;
    let name = width.saturating_sub(fixed).max(8);
    let Some(first) = rows.next() else { return };
    let head = format!("{:<name$} {:>9} {:>9} {:>7} {:>8}", "probe", "hits/s", "hits", "missed", "cycles");
    text(frame, first, &head, bold);
    let shown = state.shown(view.sort, view.reverse, &view.filter);
    let place = view.place(&shown);
    let above = (place + 2).saturating_sub(usize::from(area.height).max(2));
    for (row, (at, probe)) in rows.zip(shown.into_iter().enumerate().skip(above)) {
        let rates: Vec<i128> = probe.rates.iter().map(|rate| i128::from(*rate)).collect();
        let line = format!(
            "{:<name$} {:>9} {:>9} {:>7} {:>8}  {}",
            cut(&probe.point, name),
            if probe.off && !probe.armed { "off".to_string() } else { short(probe.rate as i128) },
            short(probe.hits.into()),
            short(probe.missed.into()),
            short(probe.cycles.into()),
            spark(&rates, line_width)
        );
        let chosen = if at == place { Style::default().add_modifier(Modifier::REVERSED) } else { Style::default() };
        text(frame, row, &line, chosen);
    }
}

fn rows_of(area: Rect) -> Vec<Rect> {
    (0..area.height).map(|row| Rect { y: area.y + row, height: 1, ..area }).collect()
}

/// One line. Text comes from outside: control characters are escaped.
fn text(frame: &mut Frame<'_>, area: Rect, line: &str, style: Style) {
    if area.height > 0 && area.width > 0 {
        let line = escape::line(line).into_owned();
        frame.render_widget(Paragraph::new(Line::styled(line, style)), area);
    }
}

fn cut(text: &str, columns: usize) -> String {
    let count = text.chars().count();
    if count <= columns {
        return text.to_string();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

/// The last numbers, from 0 to the greatest.
fn spark(numbers: &[i128], columns: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = numbers.get(numbers.len().saturating_sub(columns)..).unwrap_or_default();
    let most = shown.iter().copied().max().unwrap_or(0).max(1);
    let level = |number: &i128| LEVELS.get(((number.max(&0) * 7) / most) as usize).copied().unwrap_or(' ');
    shown.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn every_size_is_drawn() {
        let mut state = State::new();
        state.line("out\x1b[31m");
        state.probes = (0..5)
            .map(|number| Probe { number, point: format!("probe.number{number}"), ..Default::default() })
            .collect();
        let mut view = View::new(true);
        view.selected = Some(4);
        for (width, height) in [(80, 24), (20, 5), (1, 1), (300, 100), (80, 2), (3, 40)] {
            for help in [false, true] {
                view.help = help;
                let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
                terminal.draw(|frame| draw(frame, &state, &view)).unwrap();
                let text = terminal.backend().to_string();
                if (width, height, help) == (80, 24, false) {
                    assert!(
                        text.contains("probe.number0") && text.contains(r"out\x1b[31m") && text.contains("q quit"),
                        "{text}"
                    );
                }
            }
        }
        assert_eq!(spark(&[0, 7, 14, i128::MAX / 8], 3), "▁▁█");
    }
}
