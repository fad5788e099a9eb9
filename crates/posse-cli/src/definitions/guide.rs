//! The built-in agent types, including the one that answers questions from these pages.

use posse_runtime::definition::agent_type as definition;
use posse_runtime::definition::agent_type::Definition;

/// The pages for users. Internal pages would only mislead.
const DOCUMENTATION: &str = concat!(
    "\n<!-- README.md -->\n\n",
    include_str!("../../../../README.md"),
    "\n<!-- docs/cli.md -->\n\n",
    include_str!("../../../../docs/cli.md"),
    "\n<!-- docs/agents.md -->\n\n",
    include_str!("../../../../docs/agents.md"),
    "\n<!-- docs/teams.md -->\n\n",
    include_str!("../../../../docs/teams.md"),
    "\n<!-- docs/memory.md -->\n\n",
    include_str!("../../../../docs/memory.md"),
    "\n<!-- docs/skills.md -->\n\n",
    include_str!("../../../../docs/skills.md"),
    "\n<!-- docs/headless.md -->\n\n",
    include_str!("../../../../docs/headless.md"),
    "\n<!-- docs/permissions.md -->\n\n",
    include_str!("../../../../docs/permissions.md"),
    "\n<!-- docs/models.md -->\n\n",
    include_str!("../../../../docs/models.md"),
);

/// Returns all types that need no file.
pub(crate) fn built_in() -> Vec<Definition> {
    let mut types = definition::built_in();
    // How it is installed, a script for a model, tables that programs need, a list of these pages,
    // what a terminal shows, what shells do, and how a server is run: of no use to one that explains.
    let parts = [
        "install",
        "tour",
        "screen",
        "pages",
        "keys",
        "question",
        "programs",
        "completion",
        "server",
    ];
    let pages = parts.iter().fold(DOCUMENTATION.to_owned(), |pages, part| {
        without(&pages, part)
    });
    types.push(definition::guide(&pages));
    types
}

/// Leaves out the part that is marked with a word.
fn without(pages: &str, word: &str) -> String {
    let [begin, end] = ["begin", "end"].map(|side| format!("<!-- {word}: {side} -->"));
    let parts = pages.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some([before, after].concat())
    });
    parts.unwrap_or_else(|| pages.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves AD-03 (part: guide)
    #[test]
    fn the_guide_knows_the_documentation() {
        let types = built_in();
        let names: Vec<_> = types.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!(
            names,
            ["general-purpose", "Explore", "Plan", "Bash", "guide"]
        );
        let guide = &types[4].prompt;
        let words = guide.split_whitespace().count();
        assert!(
            (5_000..21_000).contains(&words),
            "{words} words: it is sent with each call"
        );
        for known in [
            "--auto-background",
            "POSSE_HOME",
            "stream-json",
            "acceptEdits",
            "docs/models.md",
            "$ARGUMENTS",
            "[roles.NAME]",
        ] {
            assert!(guide.contains(known), "nothing about {known}");
        }
    }
}
