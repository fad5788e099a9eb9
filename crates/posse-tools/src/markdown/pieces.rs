//! Splits a page into texts and tags, in one pass. Comments, declarations and elements without
//! content for readers are left out.

/// Elements that are skipped with everything inside.
const SKIPPED: [&str; 11] = [
    "script", "style", "noscript", "svg", "iframe", "template", "title", "object", "noembed",
    "noframes", "xmp",
];

/// A part of a page.
#[derive(Debug, PartialEq)]
pub(super) enum PagePiece<'a> {
    /// Text as it is in the page, with its entities.
    Text(&'a str),
    Start(Tag<'a>),
    /// Its name in lower case.
    End(String),
}

/// The start of an element.
#[derive(Debug, PartialEq)]
pub(super) struct Tag<'a> {
    /// In lower case.
    pub(super) name: String,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Tag<'a> {
    /// One without attributes.
    pub(super) fn bare(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            attributes: Vec::new(),
        }
    }

    /// Returns the value of an attribute, as it stands there.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }
}

/// Takes a page apart.
pub(super) struct Pieces<'a> {
    rest: &'a str,
    /// Elements that are known to have no end from here on. Without this, a page of many unclosed
    /// ones would be searched to its end for each.
    endless: Vec<&'static str>,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(page: &'a str) -> Self {
        Self {
            rest: page,
            endless: Vec::new(),
        }
    }

    /// Consumes what comes before `at`.
    fn take(&mut self, at: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(at);
        self.rest = rest;
        taken
    }

    /// Skips past the next `end`, or to the end of the page.
    fn skip_past(&mut self, end: &str) {
        self.rest = self.rest.split_once(end).map_or("", |(_, rest)| rest);
    }

    fn word(&mut self, stop: impl Fn(char) -> bool) -> &'a str {
        self.take(self.rest.find(stop).unwrap_or(self.rest.len()))
    }

    fn name(&mut self) -> String {
        self.word(|c| c.is_ascii_whitespace() || c == '/' || c == '>')
            .to_ascii_lowercase()
    }

    /// Consumes the attributes and the end of the tag. A quote that is not closed extends to the
    /// end of the page.
    fn attributes(&mut self) -> Vec<(&'a str, &'a str)> {
        let mut found = Vec::new();
        loop {
            self.word(|c| !c.is_ascii_whitespace() && c != '/');
            if let Some(rest) = self.rest.strip_prefix('>') {
                self.rest = rest;
                return found;
            }
            if self.rest.is_empty() {
                return found;
            }
            // A name may begin with `=`, but is never empty: each round consumes something.
            let first = self.rest.chars().next().map_or(0, char::len_utf8);
            let stop = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '=');
            let length = self.rest[first..]
                .find(stop)
                .map_or(self.rest.len(), |at| first + at);
            let name = self.take(length);
            self.word(|c| !c.is_ascii_whitespace());
            let Some(rest) = self.rest.strip_prefix('=') else {
                continue;
            };
            self.rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            let value = match self.rest.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    self.take(1);
                    let value = self.word(|c| c == quote);
                    self.take(self.rest.len().min(1));
                    value
                }
                _ => self.word(|c| c.is_ascii_whitespace() || c == '>'),
            };
            found.push((name, value));
        }
    }

    /// Skips to the end of an element. If it has no end, the rest is not skipped.
    fn skip_element(&mut self, name: &'static str) {
        if self.endless.contains(&name) {
            return;
        }
        let ends = |at: &usize| {
            let tag = &self.rest.as_bytes()[at + 2..];
            let (start, next) = (tag.get(..name.len()), tag.get(name.len()));
            start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
                && next.is_none_or(|next| !next.is_ascii_alphanumeric())
        };
        match self.rest.match_indices("</").map(|(at, _)| at).find(ends) {
            Some(at) => {
                self.take(at);
                self.skip_past(">");
            }
            None => self.endless.push(name),
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = PagePiece<'a>;

    fn next(&mut self) -> Option<PagePiece<'a>> {
        loop {
            let mut letters = self.rest.chars();
            let (first, second, third) = (letters.next()?, letters.next(), letters.next());
            let begins =
                |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphabetic());
            if first == '<' && begins(second) {
                self.take(1);
                let tag = Tag {
                    name: self.name(),
                    attributes: self.attributes(),
                };
                match SKIPPED.iter().find(|skipped| **skipped == tag.name) {
                    Some(skipped) => self.skip_element(skipped),
                    None => return Some(PagePiece::Start(tag)),
                }
            } else if first == '<' && second == Some('/') && begins(third) {
                self.take(2);
                let name = self.name();
                self.attributes();
                return Some(PagePiece::End(name));
            } else if let Some(comment) = self.rest.strip_prefix("<!--") {
                match comment
                    .strip_prefix('>')
                    .or_else(|| comment.strip_prefix("->"))
                {
                    Some(rest) => self.rest = rest,
                    None => {
                        self.rest = comment;
                        self.skip_past("-->");
                    }
                }
            } else if first == '<' && matches!(second, Some('!' | '?' | '/')) {
                self.skip_past(">");
            } else {
                let end = self.rest[first.len_utf8()..]
                    .find('<')
                    .map(|at| at + first.len_utf8());
                return Some(PagePiece::Text(self.take(end.unwrap_or(self.rest.len()))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(page: &str) -> String {
        let one = |piece| match piece {
            PagePiece::Text(text) => format!("{text:?}"),
            PagePiece::Start(tag) => format!("{}{:?}", tag.name, tag.attributes),
            PagePiece::End(name) => format!("/{name}"),
        };
        Pieces::of(page).map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn pages_come_apart() {
        for (page, pieces) in [
            ("a<B>b</B >c", r#""a" b[] "b" /b "c""#),
            (
                "<a href=x title='</a>' b = \"<b>\" c>d",
                r#"a[("href", "x"), ("title", "</a>"), ("b", "<b>")] "d""#,
            ),
            ("<br/>1 < 2 <3", r#"br[] "1 " "< 2 " "<3""#),
            ("<!-- </div> --><!--><!DOCTYPE html><?xml?></>x", r#""x""#),
            ("a<script>'<b>'</SCRIPT >b<svg>c", r#""a" "b" "c""#),
            ("a<!-- b", r#""a""#),
            ("a<b c='d", r#""a" b[("c", "d")]"#),
            ("a</b", r#""a" /b"#),
            ("ä<ä>ö", r#""ä" "<ä>ö""#),
            ("<a =b/c>", r#"a[]"#),
            ("<", r#""<""#),
        ] {
            assert_eq!(told(page), pieces, "{page}");
        }
    }
}
