//! Converts pages to Markdown. Pages come from strangers, so that the converter gets a sanitized
//! page of limited size and depth.

mod pieces;
mod sanitize;

use htmd::HtmlToMarkdown;

use sanitize::sanitize;

/// Converts HTML to Markdown, with limited time and memory for any page.
pub(crate) fn markdown(html: &str) -> String {
    let (page, whole) = sanitize(html);
    let mut told = HtmlToMarkdown::new().convert(&page).unwrap_or(page);
    if !whole {
        told.push_str("\n\n[… the page is longer …]");
    }
    told
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_become_markdown() {
        let page = "<html><head><title>t</title><style>x{}</style></head><body><h1>One</h1>\
                    <p>a <a href='/b'>b</a><script>evil()</script><ul><li>c<li>d</ul></body></html>";
        let told = markdown(page);
        assert!(told.starts_with("# One\n\na [b](/b)"), "{told}");
        assert!(!told.contains("evil") && !told.contains("x{}"), "{told}");
        assert!(told.ends_with("*   c\n*   d"), "{told}");
    }

    #[test]
    fn what_people_write_is_kept() {
        let page = "<div><div>a &amp; b</div><div>c</div></div><pre><code class='x language-rust'>fn a() {\n\
                    }</code></pre><table><thead><tr><th>A<th>B</thead><tr><td>1<td><b>2</b></table>\
                    <blockquote><p>q</p></blockquote><ol start=3><li><div>x</div></li><li>y</ol>\
                    <a href=/l><div>card</div><div>text</div></a>";
        let told = markdown(page);
        let expected = "a & b\n\nc\n\n```rust\nfn a() {\n}\n```\n\n| A | B     |\n| - | ----- |\n| 1 | **2** |\n\n\
                        > q\n\n3.  x\n\n4.  y\n\n[card text](/l)";
        assert_eq!(told, expected);
    }

    /// Pages made to overwhelm who reads them.
    fn attacks() -> Vec<String> {
        let nested = |n: usize, start: &str, middle: &str, end: &str| {
            [&start.repeat(n), middle, &end.repeat(n)].concat()
        };
        let wide = "x".repeat(400_000);
        vec![
            "<b title=\"</b>\">".repeat(3000),
            "<b title=\"</b>\">".repeat(300_000),
            "<div><!--</div>-->".repeat(200_000),
            "<optgroup>".repeat(300_000),
            "<div></x>".repeat(100_000) + "deep<br>down",
            "<svg>".repeat(200_000),
            "<script>".repeat(150_000),
            "<!--".repeat(250_000),
            "<a b='".repeat(200_000),
            "<".repeat(1 << 20),
            "</".repeat(1 << 19),
            "<a ".repeat(1 << 18),
            (0..50_000).map(|n| format!("<p><b a={n}></p>")).collect(),
            (0..100_000)
                .map(|n| format!("<p><a href={n}><b><i>x</p>"))
                .collect(),
            nested(100_000, "<table><tr><td>", "x", "</table>"),
            nested(
                100_000,
                "<table><caption>",
                "x",
                "</caption><thead></thead></table>",
            ),
            nested(100_000, "<table>", "x", ""),
            nested(100_000, "<pre><code>", "```", "</code></pre>"),
            nested(100_000, "<blockquote>", &"x<br>".repeat(100_000), ""),
            nested(100_000, "<ul><li>", &"x<br>".repeat(100_000), ""),
            nested(100_000, "<ol start=2147483647><li>", "x", ""),
            nested(
                10,
                "<ul><li>",
                &format!("<pre>{}", "x\n".repeat(300_000)),
                "",
            ),
            format!("<table><th>{wide}</th>{}", "<tr><td>".repeat(100_000)),
            format!(
                "<table><thead><tr>{}</thead>{}",
                "<th>".repeat(8000),
                "<tr><td>".repeat(8000)
            ),
            format!("<b>{wide}</b>{}", "<b>x</b>".repeat(100_000)),
            format!(
                "<b>{wide}</b>{}",
                "<strong>x</strong><code>x</code>".repeat(100_000)
            ),
            "<table>".to_owned() + &"x<b>y</b>".repeat(50_000),
            "<select><option>".repeat(50_000),
            "<math><mi><annotation-xml encoding=text/html><p>".repeat(60_000),
        ]
    }

    #[test]
    fn no_page_overwhelms() {
        for page in attacks() {
            let begun = Instant::now();
            let told = markdown(&page);
            let (took, start) = (begun.elapsed(), &page[..60]);
            assert!(took < Duration::from_secs(10), "{took:?}: {start}");
            assert!(told.len() < 31 << 19, "{}: {start}", told.len());
        }
    }

    #[test]
    fn the_rest_of_a_long_page_is_said_to_be_there() {
        let told = markdown(&"<p>word</p>".repeat(400_000));
        assert!(told.starts_with("word\n\nword") && told.ends_with("[… the page is longer …]"));
        assert_eq!(
            markdown(&("<div></x>".repeat(400_000) + "deep<br>down")).trim(),
            "deep  \ndown"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_soup_of_tags_overwhelms(
            soup in prop::collection::vec(
                prop_oneof![
                    "</?(b|i|a|p|div|table|caption|thead|tr|td|th|ul|ol|li|pre|code|blockquote|h1|br|svg|select\
                     |option|form|button|math|mi|template|script|frameset|nobr|font|marquee|ruby|rt)>",
                    "<(a|img|b|ol|code|td) (href|src|title|start|class)=['\"]?[</>a-z1 ]{0,6}['\"]?>",
                    "[a-zä \n|*`#<>&;!-]{0,8}",
                ],
                0..60,
            ),
            times in 1_usize..200,
        ) {
            let begun = Instant::now();
            let told = markdown(&soup.concat().repeat(times));
            prop_assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
            prop_assert!(told.len() < 32 << 20);
        }
    }
}
