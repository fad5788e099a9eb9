//! A command line as bash has it: split into words, and words put back into it.

/// Returns the words of a line up to the cursor, without their quotes. The last one is empty if the
/// cursor stands after a blank.
pub(super) fn split(line: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.push(word.unwrap_or_default());
    words
}

/// Returns a word that a shell reads as this one.
pub(super) fn escaped(word: &str) -> String {
    let mut escaped = String::with_capacity(word.len());
    for c in word.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !"-._/:@,%+=~".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let check = |line: &str, words: &[&str]| assert_eq!(split(line), words, "{line}");
        check("", &[""]);
        check("posse ", &["posse", ""]);
        check("posse team  sh", &["posse", "team", "sh"]);
        check("posse --resume=01", &["posse", "--resume=01"]);
        check("posse 'a b' \"c 'd", &["posse", "a b", "c 'd"]);
        check("posse a\\ b 'c\\", &["posse", "a b", "c\\"]);
        check("posse '' ", &["posse", "", ""]);
    }

    #[test]
    fn an_escaped_word_is_the_same_word() {
        for word in ["a b", "it's", "a$b", "ä", "x:y@z", "~/a", "(a)"] {
            assert_eq!(split(&escaped(word)), [word]);
        }
    }
}
