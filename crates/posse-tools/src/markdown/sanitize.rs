//! A page written anew so that nothing in it can be a burden to who reads it: few kinds of
//! elements, each with its end, none nested deep, none twice in itself where that would multiply.
//!
//! The converter recurses, pads tables, and looks at some parts twice; it is made for people's
//! pages.

use super::pieces::{PagePiece, Pieces, Tag};
use crate::answer::clip;

/// How much is written, how many tags, and how deep they nest.
const MOST_BYTES: usize = 512 << 10;
const MOST_TAGS: usize = 20_000;
const MOST_DEPTH: usize = 24;
/// How deep a table's own parts nest.
const TABLE_DEPTH: usize = 4;
/// Longer values are no addresses, but content.
const VALUE_BYTES: usize = 2000;
/// How large a table may be once each cell is as wide as the widest.
const TABLE_BYTES: usize = 1 << 20;

/// Where an end that fits nothing inside stops looking outside.
const CONTAINERS: [&str; 6] = ["td", "th", "li", "ul", "ol", "blockquote"];
const TABLE_PARTS: [&str; 4] = ["table", "thead", "tbody", "tr"];

/// Writes a page anew; whether that is all of it.
pub(super) fn sanitize(page: &str) -> (String, bool) {
    let mut sanitizer = Sanitizer::default();
    for piece in Pieces::of(page) {
        if sanitizer.out.len() >= MOST_BYTES {
            sanitizer.close_to(0);
            return (sanitizer.out, false);
        }
        match piece {
            PagePiece::Text(text) => sanitizer.text(text),
            PagePiece::Start(tag) => sanitizer.start(&tag),
            PagePiece::End(name) => sanitizer.end(&name),
        }
    }
    let whole = !sanitizer.cut;
    sanitizer.close_to(0);
    (sanitizer.out, whole)
}

/// What becomes of an element.
enum ElementKind {
    /// It is written, by this name.
    Kept(&'static str),
    /// It is written and has no end.
    Void(&'static str),
    /// What is before and behind it is kept apart.
    Gap,
    /// Only what is in it is written.
    Gone,
}

fn kind(name: &str) -> ElementKind {
    const KEPT: [&str; 22] = [
        "a",
        "strong",
        "em",
        "code",
        "pre",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "ul",
        "ol",
        "li",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ];
    const VOID: [&str; 3] = ["br", "hr", "img"];
    const GAPS: [&str; 28] = [
        "address",
        "article",
        "aside",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "dir",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "legend",
        "main",
        "nav",
        "optgroup",
        "option",
        "search",
        "section",
        "summary",
        "textarea",
    ];
    let name = match name {
        "b" => "strong",
        "i" => "em",
        "tfoot" => "tbody",
        "menu" => "ul",
        name => name,
    };
    let known = |names: &[&'static str]| names.iter().find(|known| **known == name).copied();
    match (known(&KEPT), known(&VOID), known(&GAPS)) {
        (Some(name), ..) => ElementKind::Kept(name),
        (_, Some(name), _) => ElementKind::Void(name),
        (.., Some(_)) => ElementKind::Gap,
        _ => ElementKind::Gone,
    }
}

/// Returns what flows in a line.
fn is_inline(name: &str) -> bool {
    matches!(name, "a" | "strong" | "em" | "code")
}

#[derive(Default)]
struct Sanitizer {
    out: String,
    cut: bool,
    open: Vec<OpenElement>,
    tags: usize,
    table: Table,
    /// What ended just here: the length of `out`, and its start. Another of the same goes on with
    /// it.
    ended: Option<(usize, String)>,
}

struct OpenElement {
    name: &'static str,
    start: String,
}

/// The table that is being written; one in another is not.
#[derive(Default)]
struct Table {
    inner: usize,
    start: usize,
    rows: usize,
    columns: usize,
    most_columns: usize,
    cell: usize,
    widest: usize,
}

impl Sanitizer {
    fn text(&mut self, text: &str) {
        if text.trim().is_empty() && self.in_table_part() {
            return;
        }
        self.cell();
        let fitting = clip(text, MOST_BYTES.saturating_sub(self.out.len()));
        self.cut |= fitting.len() < text.len();
        self.out.push_str(&fitting.replace('<', "&lt;"));
    }

    fn start(&mut self, tag: &Tag<'_>) {
        if self.tags >= MOST_TAGS {
            return;
        }
        match kind(&tag.name) {
            ElementKind::Kept(name) => self.open(name, tag),
            ElementKind::Void("img") if value(tag, "src").is_none() => {}
            ElementKind::Void(name) => {
                if name == "hr" {
                    self.close_paragraph();
                }
                self.cell();
                self.write(&rewritten(name, tag));
            }
            ElementKind::Gap => self.gap(),
            ElementKind::Gone => {}
        }
    }

    fn open(&mut self, name: &'static str, tag: &Tag<'_>) {
        let is_part = matches!(name, "thead" | "tbody" | "tr" | "td" | "th");
        let in_table = self.has("table");
        if name == "table" && in_table {
            self.table.inner += 1;
        }
        if self.has("pre") && !is_inline(name)
            || (name == "table" && in_table)
            || (is_part && (!in_table || self.table.inner > 0))
        {
            return self.gap();
        }
        match name {
            "a" => self.close("a"),
            "li" => self.close("li"),
            "td" | "th" => self.close_until(&TABLE_PARTS),
            "tr" => self.close_until(&["table", "thead", "tbody"]),
            "thead" | "tbody" => self.close_until(&["table"]),
            // One in itself says nothing more.
            "strong" | "em" | "code" if self.has(name) => return,
            "strong" | "em" | "code" => {}
            _ => self.close_paragraph(),
        }
        if !is_part && self.open.len() + TABLE_DEPTH >= MOST_DEPTH {
            return self.gap();
        }
        match name {
            "table" => {
                self.cell();
                self.table = Table {
                    start: self.out.len(),
                    ..Table::default()
                };
            }
            "tr" => self.table.columns = 0,
            "td" | "th" => self.table.columns += 1,
            "thead" | "tbody" => {}
            _ => self.cell(),
        }
        let start = rewritten(name, tag);
        match self.ended.take() {
            Some((at, same))
                if at == self.out.len() && same == start && name != "a" && is_inline(name) =>
            {
                self.out.truncate(at - name.len() - "</>".len());
            }
            _ => self.write(&start),
        }
        self.table.cell = if matches!(name, "td" | "th") {
            self.out.len()
        } else {
            self.table.cell
        };
        self.open.push(OpenElement { name, start });
    }

    fn end(&mut self, name: &str) {
        match kind(name) {
            ElementKind::Kept("table") if self.table.inner > 0 => {
                self.table.inner -= 1;
                self.gap();
            }
            ElementKind::Kept("table") => {
                if let Some(at) = self.position("table") {
                    self.close_to(at);
                }
            }
            ElementKind::Kept("thead" | "tbody" | "tr" | "td" | "th") if self.table.inner > 0 => {
                self.gap()
            }
            ElementKind::Kept(name) => self.close(name),
            ElementKind::Gap => self.gap(),
            ElementKind::Void(_) | ElementKind::Gone => {}
        }
    }

    /// Keeps apart what was written from what comes.
    fn gap(&mut self) {
        if self.has("pre") {
            if !self.out.ends_with('\n') {
                self.out.push('\n');
            }
            return;
        }
        if self.tags >= MOST_TAGS {
            self.out.push(' ');
            return;
        }
        self.close_paragraph();
        match self.open.last().map(|open| open.name) {
            Some(name) if TABLE_PARTS.contains(&name) => {}
            Some(name) if is_inline(name) || name.starts_with('h') => self.out.push(' '),
            _ if self.out.ends_with("<p></p>") => {}
            _ => self.write("<p></p>"),
        }
    }

    fn write(&mut self, tag: &str) {
        self.tags += 1;
        self.out.push_str(tag);
    }

    fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.open.iter().rposition(|open| open.name == name)
    }

    fn in_table_part(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| TABLE_PARTS.contains(&open.name))
    }

    /// What stands between cells gets one of its own: a parser would move it out of the table.
    fn cell(&mut self) {
        if !self.in_table_part() {
            return;
        }
        let row = self.open.last().is_some_and(|open| open.name == "tr");
        for name in if row { &["td"][..] } else { &["tr", "td"] } {
            self.open(name, &Tag::bare(name));
        }
    }

    fn close_paragraph(&mut self) {
        self.close("p");
    }

    /// Ends the innermost element of this name, if it is in the same container.
    fn close(&mut self, name: &str) {
        let Some(at) = self.position(name) else {
            return;
        };
        let within = &self.open[at + 1..];
        let apart = match name {
            "ul" | "ol" | "blockquote" => {
                within.iter().any(|open| matches!(open.name, "td" | "th"))
            }
            "thead" | "tbody" | "tr" | "td" | "th" => false,
            "li" => within
                .iter()
                .any(|open| matches!(open.name, "ul" | "ol" | "td" | "th")),
            _ => within.iter().any(|open| CONTAINERS.contains(&open.name)),
        };
        if !apart {
            self.close_to(at);
        }
    }

    fn close_until(&mut self, names: &[&str]) {
        let at = self
            .open
            .iter()
            .rposition(|open| names.contains(&open.name));
        self.close_to(at.map_or(0, |at| at + 1));
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth
            && let Some(OpenElement { name, start }) = self.open.pop()
        {
            if matches!(name, "td" | "th") {
                self.table.widest = self
                    .table
                    .widest
                    .max(self.out.len().saturating_sub(self.table.cell));
            }
            self.out.push_str(&format!("</{name}>"));
            match name {
                "tr" => {
                    self.table.rows += 1;
                    self.table.most_columns = self.table.most_columns.max(self.table.columns);
                }
                "table" => self.end_table(),
                _ => {}
            }
            self.ended = Some((self.out.len(), start));
        }
    }

    /// A table that grows too large when its columns are made even is none: without heads, its
    /// cells are told one after the other.
    fn end_table(&mut self) {
        let Table {
            start,
            rows,
            columns,
            most_columns,
            widest,
            ..
        } = std::mem::take(&mut self.table);
        let cells = (rows + 1).saturating_mul(most_columns.max(columns));
        if cells.saturating_mul(widest + 3) > TABLE_BYTES {
            let table = self.out.split_off(start);
            let headless = table.replace("<th>", "<td>").replace("</th>", "</td>");
            self.out.push_str(
                &headless
                    .replace("<thead>", "<tbody>")
                    .replace("</thead>", "</tbody>"),
            );
        }
    }
}

/// Returns the start of an element with what matters of its attributes.
fn rewritten(name: &str, tag: &Tag<'_>) -> String {
    let attributes: &[&str] = match name {
        "a" => &["href", "title"],
        "img" => &["src", "alt", "title"],
        "ol" => &["start"],
        "code" => &["class"],
        _ => &[],
    };
    let values = attributes.iter().filter_map(|name| {
        let value = value(tag, name)?
            .replace('"', "&quot;")
            .replace('<', "&lt;");
        Some(format!(" {name}=\"{value}\""))
    });
    format!("<{name}{}>", values.collect::<String>())
}

fn value<'a>(tag: &Tag<'a>, name: &str) -> Option<&'a str> {
    tag.attribute(name)
        .filter(|value| value.len() <= VALUE_BYTES && !value.trim_start().starts_with("data:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_start_has_its_end() {
        for (page, written) in [
            (
                "<div class=x>a<p>b<div>c</div>",
                "<p></p>a<p>b</p><p></p>c<p></p>",
            ),
            (
                "<b title='</b>'>a<i>b</b>c",
                "<strong>a<em>b</em></strong>c",
            ),
            (
                "<ul><li>a<li>b<ul><li>c</ul></ul>d",
                "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>d",
            ),
            (
                "<table>x<tr><td>a<td>b</table>",
                "<table><tr><td>x</td></tr><tr><td>a</td><td>b</td></tr></table>",
            ),
            (
                "<table><td><table><td>a</table>b</table>",
                "<table><td><p></p>a<p></p>b</td></table>",
            ),
            ("<td>a</td>", "<p></p>a"),
            (
                "<b>a</b><b>b</b> <b>c</b>",
                "<strong>ab</strong> <strong>c</strong>",
            ),
            (
                "<pre><code><div>a</div><div>b</div></code></pre>",
                "<pre><code>\na\nb\n</code></pre>",
            ),
            (
                "<a href='\"<th>'>a<a href=b>c",
                "<a href=\"&quot;&lt;th>\">a</a><a href=\"b\">c</a>",
            ),
            (
                "<img src=data:x><img src=y onload=z>1<2",
                "<img src=\"y\">1&lt;2",
            ),
            ("</p></table></td></li>a", "a"),
        ] {
            assert_eq!(sanitize(page), (written.to_owned(), true), "{page}");
        }
    }
}
