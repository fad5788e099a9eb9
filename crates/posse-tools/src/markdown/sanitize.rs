//! Rewrites a page so that it cannot burden the converter: few kinds of elements, each closed,
//! none nested deeply, none nested in itself where that would multiply.
//!
//! The converter recurses, pads tables, and visits some parts twice: it is made for honest pages.

use super::pieces::{PagePiece, Pieces, Tag};
use crate::answer::clip;

/// Maximum size of the result.
const MOST_BYTES: usize = 512 << 10;
/// Maximum number of tags.
const MOST_TAGS: usize = 20_000;
/// Maximum depth of nesting.
const MOST_DEPTH: usize = 24;
/// Depth of a table's own parts.
const TABLE_DEPTH: usize = 4;
/// Longer attribute values are not addresses but content.
const VALUE_BYTES: usize = 2000;
/// Maximum size of a table once each cell is as wide as the widest.
const TABLE_BYTES: usize = 1 << 20;

/// An end tag that matches nothing inside one of these does not close elements outside of it.
const CONTAINERS: [&str; 6] = ["td", "th", "li", "ul", "ol", "blockquote"];
const TABLE_PARTS: [&str; 4] = ["table", "thead", "tbody", "tr"];

/// Rewrites a page. Returns false if it was cut.
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

/// How an element is treated.
enum ElementKind {
    /// It is written under this name.
    Kept(&'static str),
    /// It is written and has no end tag.
    Void(&'static str),
    /// It separates what is before and after it.
    Gap,
    /// Only its content is written.
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

/// Returns true for elements inside a line.
fn is_inline(name: &str) -> bool {
    matches!(name, "a" | "strong" | "em" | "code")
}

/// The state of rewriting.
#[derive(Default)]
struct Sanitizer {
    out: String,
    cut: bool,
    open: Vec<OpenElement>,
    tags: usize,
    table: Table,
    /// The element that ended just here: the length of `out`, and its start tag. If the same one
    /// follows, it is continued.
    ended: Option<(usize, String)>,
}

struct OpenElement {
    name: &'static str,
    start: String,
}

/// The current table. Tables inside it are not written as tables.
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
            // Nested in itself it has no further effect.
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

    /// Separates what follows from what was written.
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

    /// Opens a cell for content between cells, which a parser would move out of the table.
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

    /// Closes the innermost element of this name, if it is in the same container.
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

    /// Makes a table that would become too large when its columns are padded into plain cells:
    /// without a head, they are written one after another.
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

/// Returns a start tag with the attributes that matter.
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
