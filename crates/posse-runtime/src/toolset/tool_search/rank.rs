//! Which tools a query means. Pure.

use std::cmp::Reverse;

use posse_protocol::ToolSpec;

/// A query that begins with this names the tools that it wants.
const SELECT: &str = "select:";

/// What a model looks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// Tools of these names.
    Named(Vec<String>),
    /// Tools that words say something about.
    Words {
        /// Words that a tool's name must have.
        required: Vec<String>,
        /// Words that count if a tool has them.
        wanted: Vec<String>,
    },
}

impl Query {
    /// Returns what a text means; none if it says nothing.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(names) = text.strip_prefix(SELECT) {
            let names = names.split(',').map(str::trim).filter(|it| !it.is_empty());
            let names: Vec<String> = names.map(str::to_owned).collect();
            return (!names.is_empty()).then_some(Self::Named(names));
        }
        let (mut required, mut wanted) = (Vec::new(), Vec::new());
        for word in text.split_whitespace() {
            match word.strip_prefix('+') {
                Some(word) => required.extend(words(word)),
                None => wanted.extend(words(word)),
            }
        }
        let says = !(required.is_empty() && wanted.is_empty());
        says.then_some(Self::Words { required, wanted })
    }

    /// Returns the tools that are meant, the best first and at most `most` of those that words are
    /// said about.
    pub(super) fn find(&self, tools: &[ToolSpec], most: usize) -> Vec<ToolSpec> {
        match self {
            Self::Named(names) => {
                let named = |name: &String| tools.iter().find(|tool| tool.name == *name);
                names.iter().filter_map(named).cloned().collect()
            }
            Self::Words { required, wanted } => {
                let mut found: Vec<_> = tools
                    .iter()
                    .filter_map(|tool| Some((score(tool, required, wanted)?, tool)))
                    .collect();
                found.sort_by_key(|(score, _)| Reverse(*score));
                let best = found.into_iter().take(most);
                best.map(|(_, tool)| tool.clone()).collect()
            }
        }
    }

    /// Returns the names that were asked for and not found.
    pub(super) fn missing(&self, found: &[ToolSpec]) -> Vec<String> {
        let Self::Named(names) = self else {
            return Vec::new();
        };
        let missing = |name: &&String| !found.iter().any(|tool| tool.name == **name);
        names.iter().filter(missing).cloned().collect()
    }
}

/// Returns how well a tool fits; none if it does not.
fn score(tool: &ToolSpec, required: &[String], wanted: &[String]) -> Option<usize> {
    let (name, about) = (words(&tool.name), words(&tool.description));
    let full = tool.name.to_lowercase();
    let has = |word: &String| full.contains(word.as_str());
    if !required.iter().all(has) {
        return None;
    }
    let each = |word: &String| {
        let in_name = match () {
            () if name.contains(word) => 10,
            () if has(word) => 5,
            () => 0,
        };
        in_name + usize::from(about.iter().any(|it| it.starts_with(word.as_str()))) * 2
    };
    let score: usize = wanted.iter().map(each).sum();
    (score > 0 || !required.is_empty()).then_some(score)
}

/// Returns the words of a text in small letters. A name is cut where its writing changes.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if !c.is_alphanumeric() || begins {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse_protocol::RawJson;

    fn tools() -> Vec<ToolSpec> {
        let tools = [
            ("mcp__github__create_issue", "Opens an issue."),
            ("mcp__github__listPulls", "Lists pull requests."),
            ("mcp__files__read", "Reads a file; not for issues."),
        ];
        tools
            .map(|(name, description)| ToolSpec {
                name: name.into(),
                description: description.into(),
                input_schema: RawJson::from(&serde_json::json!({ "type": "object" })),
            })
            .to_vec()
    }

    fn found(query: &str, most: usize) -> Vec<String> {
        let query = Query::read(query).unwrap();
        let found = query.find(&tools(), most).into_iter();
        found.map(|tool| tool.name).collect()
    }

    #[test]
    fn tools_are_found_by_their_names() {
        let named = found(
            "select:mcp__files__read, mcp__none__x,mcp__github__listPulls",
            1,
        );
        assert_eq!(named, ["mcp__files__read", "mcp__github__listPulls"]);
    }

    #[test]
    fn the_best_comes_first() {
        let issues = ["mcp__github__create_issue", "mcp__files__read"];
        assert_eq!(found("issue", 5), issues);
        assert_eq!(found("issue", 1), issues[..1]);
        assert_eq!(found("pulls", 5), ["mcp__github__listPulls"]);
        assert_eq!(found("nothing of the kind", 5), Vec::<String>::new());
    }

    #[test]
    fn a_required_word_is_in_the_name() {
        assert_eq!(found("+files issue", 5), ["mcp__files__read"]);
        assert_eq!(found("+github", 5).len(), 2);
        assert_eq!(found("+issue read", 5), ["mcp__github__create_issue"]);
    }

    #[test]
    fn a_query_without_words_says_nothing() {
        for query in ["", "  ", "select:", "select: ,", "+", "--"] {
            assert_eq!(Query::read(query), None, "{query:?}");
        }
    }
}
