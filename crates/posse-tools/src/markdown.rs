//! Pages as Markdown. What a page holds is the business of strangers: one that is nested deep enough to
//! exhaust the stack is not built at all, but stripped of its tags.

use htmd::HtmlToMarkdown;

/// No page for people nests as deep.
const MOST_DEPTH: usize = 256;

/// What says nothing to a reader.
const SKIPPED: [&str; 7] = ["script", "style", "noscript", "svg", "iframe", "template", "head"];

/// Elements that have no end, or end by themselves where the next of their kind begins.
const UNNESTED: [&str; 29] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
    "param", "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup", "option",
    "optgroup", "path", "caption",
];

/// Turns HTML into Markdown.
pub(crate) fn markdown(html: &str) -> String {
    if depth(html) > MOST_DEPTH {
        return stripped(html);
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    converter.convert(html).unwrap_or_else(|_| stripped(html))
}

/// How deep the page nests, or more. Ends that fit nothing are not counted, so that none can hide depth.
fn depth(html: &str) -> usize {
    let mut open: Vec<&str> = Vec::new();
    let mut deepest = 0;
    for tag in html.split('<').skip(1) {
        let (ends, tag) = match tag.strip_prefix('/') {
            Some(tag) => (true, tag),
            None => (false, tag),
        };
        let length = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(tag.len());
        let name = &tag[..length];
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        if ends {
            if open.last().is_some_and(|last| last.eq_ignore_ascii_case(name)) {
                open.pop();
            }
        } else if !UNNESTED.iter().any(|unnested| unnested.eq_ignore_ascii_case(name)) {
            open.push(name);
            deepest = deepest.max(open.len());
            if deepest > MOST_DEPTH {
                break;
            }
        }
    }
    deepest
}

fn stripped(html: &str) -> String {
    let texts = html.split('<').enumerate().map(|(n, part)| match part.split_once('>') {
        Some((_, text)) if n > 0 => text,
        _ if n > 0 => "",
        _ => part,
    });
    let texts: String = texts.flat_map(|text| [text, " "]).collect();
    texts.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_markdown() {
        let page = "<html><head><title>t</title><style>x{}</style></head><body><h1>One</h1>\
                    <p>a <a href='/b'>b</a><script>evil()</script><ul><li>c<li>d</ul></body></html>";
        let told = markdown(page);
        assert!(told.starts_with("# One\n\na [b](/b)"), "{told}");
        assert!(!told.contains("evil") && !told.contains("x{}"), "{told}");
    }

    #[test]
    fn a_page_nested_too_deep_is_stripped() {
        let hidden = "<div></x>".repeat(400_000) + "deep<br>down";
        assert_eq!(markdown(&hidden), "deep down");
        assert!(depth(&"<p>".repeat(10_000)) == 0);
        assert_eq!(depth("<div><P><Span>x</SPAN></div><div></div>"), 2);
    }
}
