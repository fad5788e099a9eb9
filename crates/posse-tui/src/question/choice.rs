//! Questions with options, as text, and what a person chooses.

use posse_protocol::{ChoiceAnswers, ChoiceQuestion, Choices, Elicitation, Question, QuestionKind};

use crate::text::tame;

/// Returns the questions with options that a question asks; none if it asks something else.
pub fn of(question: &Question) -> Option<Choices> {
    match question.kind {
        QuestionKind::Choice => Choices::read(&question.input).ok(),
        QuestionKind::Form => Elicitation::read(&question.input).map(|asked| asked.choices()),
        QuestionKind::Permission | QuestionKind::Plan => None,
    }
}

/// Returns a question and its numbered options, safe to show, each on lines of its own.
pub fn lines(asked: &ChoiceQuestion) -> String {
    let several = match asked.multi_select {
        true => " (several are possible)",
        false => "",
    };
    let mut text = format!(
        "[{}] {}{several}\n",
        tame(&asked.header),
        tame(&asked.question)
    );
    for (number, option) in (1..).zip(&asked.options) {
        let (label, about) = (tame(&option.label), tame(&option.description));
        let about = match about.trim() {
            "" => String::new(),
            about => format!(": {about}"),
        };
        text.push_str(&format!("{number}  {label}{about}\n"));
        for line in option.preview.iter().flat_map(|preview| preview.lines()) {
            text.push_str(&format!("   ┊ {}\n", tame(line)));
        }
    }
    text
}

/// Returns all questions in one line.
pub fn in_a_line(choices: &Choices) -> String {
    let texts = choices
        .questions
        .iter()
        .map(|asked| asked.question.as_str());
    texts.collect::<Vec<_>>().join(" ")
}

/// Returns what was answered, safe to show: a line for each question that was.
pub fn answered(choices: &Choices, given: &ChoiceAnswers) -> String {
    let answers = choices.questions.iter().filter_map(|asked| {
        let answer = given.answers.get(&asked.question)?;
        Some(format!("  {} → {}\n", tame(&asked.header), tame(answer)))
    });
    let words = given
        .response
        .iter()
        .map(|words| format!("  {}\n", tame(words)));
    answers.chain(words).collect()
}

/// Words that are not an answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotChosen {
    /// There are none.
    #[error("write an answer")]
    Nothing,
    /// A number that no option has.
    #[error("choose from 1 to {0}, or write an answer of your own")]
    NoSuchOption(usize),
    /// Several, where one is wanted.
    #[error("only one of them can be chosen")]
    OnlyOne,
}

/// Returns the answer that `words` mean: numbers or labels of options, with commas if several are
/// possible, or a person's own words.
pub fn chosen(asked: &ChoiceQuestion, words: &str) -> Result<String, NotChosen> {
    let words = words.trim();
    if words.is_empty() {
        return Err(NotChosen::Nothing);
    }
    if asked.options.is_empty() {
        return Ok(words.to_owned());
    }
    let parts: Vec<&str> = words.split(',').map(str::trim).collect();
    let numbers: Option<Vec<usize>> = parts.iter().map(|part| part.parse().ok()).collect();
    let label = |text: &str| {
        let same = |label: &str| label.to_lowercase() == text.to_lowercase();
        let labels = asked.options.iter().map(|option| &option.label);
        labels.into_iter().find(|label| same(label)).cloned()
    };
    let labels: Option<Vec<String>> = match numbers {
        Some(numbers) => {
            let option = |number: usize| asked.options.get(number.checked_sub(1)?);
            let labels = numbers
                .into_iter()
                .map(|it| Some(option(it)?.label.clone()));
            let labels: Option<Vec<String>> = labels.collect();
            Some(labels.ok_or(NotChosen::NoSuchOption(asked.options.len()))?)
        }
        // A label may have a comma.
        None => label(words)
            .map(|label| vec![label])
            .or_else(|| parts.iter().map(|part| label(part)).collect()),
    };
    match labels {
        Some(labels) if labels.len() > 1 && !asked.multi_select => Err(NotChosen::OnlyOne),
        Some(mut labels) => {
            let mut seen = Vec::new();
            labels.retain(|label| {
                let is_new = !seen.contains(label);
                seen.push(label.clone());
                is_new
            });
            Ok(labels.join(", "))
        }
        None => Ok(words.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(several: bool) -> ChoiceQuestion {
        let option = |label: &str| json!({"label": label, "description": format!("about {label}")});
        serde_json::from_value(json!({
            "question": "Which?", "header": "Kind", "multiSelect": several,
            "options": [option("Red"), option("Green, dark"), option("Blue")],
        }))
        .unwrap()
    }

    #[test]
    fn numbers_labels_and_own_words_are_answers() {
        let check = |several, words, expected: Result<&str, NotChosen>| {
            let expected = expected.map(str::to_owned);
            assert_eq!(chosen(&asked(several), words), expected, "{words}");
        };
        for several in [false, true] {
            check(several, "1", Ok("Red"));
            check(several, " blue ", Ok("Blue"));
            check(several, "green, dark", Ok("Green, dark"));
            check(
                several,
                "something else, really",
                Ok("something else, really"),
            );
            check(several, "4", Err(NotChosen::NoSuchOption(3)));
            check(several, "0", Err(NotChosen::NoSuchOption(3)));
            check(several, "", Err(NotChosen::Nothing));
        }
        check(true, "3,1,3", Ok("Blue, Red"));
        check(true, "red, blue", Ok("Red, Blue"));
        check(false, "1,2", Err(NotChosen::OnlyOne));
    }
}
