//! Pages name only what their readers have.

use super::*;

#[test]
fn what_a_page_says_of_others_can_be_followed() {
    let check = |line: &str, told: &str| assert_eq!(with_commands(line), told);
    check(
        "see [trust](trust.md) and [the board](terminal.md#the-board).",
        "see trust (`posse help trust`) and the board (`posse help terminal`).",
    );
    check("(`docs/teams.md`)", "(`posse help teams`)");
    check("[x](trust.md", "[x](trust.md");
    for topic in all() {
        let page = topic.markdown();
        assert!(page.starts_with("# "), "{}", topic.name);
        let lost = |it: &&Topic| {
            page.contains(&format!("docs/{}.md", it.name))
                || page.contains(&format!("({}.md", it.name))
        };
        let lost: Vec<&str> = all().filter(lost).map(|it| it.name).collect();
        assert_eq!(lost, [""; 0], "{}", topic.name);
        assert!(!page.contains("<!-- run:"), "{}", topic.name);
        assert!(topic.text(Some(60)).contains("\x1b["), "{}", topic.name);
    }
}
