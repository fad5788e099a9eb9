//! Everybody else, in a line or two.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::conversation::{Conversation, Other, Sign};
use crate::text::{clip, columns};

/// Number of columns of one of the others at most.
const WIDEST: usize = 44;

/// Returns the others, those that need the person first.
pub(super) fn lines(it: &Conversation, width: u16) -> Vec<Line<'static>> {
    let mut others: Vec<(usize, Sign, &Other)> = (1..)
        .zip(it.others.all())
        .map(|(number, other)| {
            let asks = it.questions.asks(other.id.into());
            let sign = if asks { Sign::Asks } else { other.sign };
            (number, sign, other)
        })
        .collect();
    others.sort_by_key(|(number, sign, _)| (*sign != Sign::Asks, *sign != Sign::Working, *number));
    let mut line = Line::default();
    let (mut used, mut shown) = (0, 0);
    for (number, sign, other) in &others {
        let spans = entry(*number, *sign, other, other.id == it.shown.agent.uuid());
        let needed: usize = spans.iter().map(|span| columns(&span.content)).sum();
        if shown > 0 && used + needed + 8 > usize::from(width) {
            break;
        }
        used += needed;
        shown += 1;
        line.spans.extend(spans);
    }
    if shown == 0 {
        return Vec::new();
    }
    if others.len() > shown {
        let more = format!("+{}", others.len() - shown);
        line.push_span(Span::styled(more, Style::new().dim()));
    }
    vec![clip(&line, width)]
}

fn entry(number: usize, sign: Sign, other: &Other, is_shown: bool) -> Vec<Span<'static>> {
    let name = match is_shown {
        true => Style::new().bold().underlined(),
        false => Style::new().bold(),
    };
    let doing = match sign {
        Sign::Working if !other.doing.is_empty() => other.doing.clone(),
        sign => sign.word().to_owned(),
    };
    let doing: String = doing.chars().take(WIDEST).collect();
    vec![
        Span::styled(format!("{number} "), Style::new().dim()),
        Span::styled(other.name.clone(), name),
        Span::styled(format!(" {} ", sign.mark()), sign.style()),
        Span::styled(format!("{doing}   "), Style::new().dim()),
    ]
}
