//! Images in prompts.

use super::*;
use crate::conversation::{AttachedImage, Request};

fn image(name: &str) -> AttachedImage {
    AttachedImage {
        name: name.into(),
        bytes: 119_500,
        media_type: "image/png".into(),
        data: "eA==".into(),
    }
}

fn says(words: &str, images: &[&str]) -> Effect {
    let images = images.iter().map(|name| image(name)).collect();
    Effect::SayImages(session(), words.into(), images)
}

#[test]
fn a_pasted_path_of_an_image_is_asked_for() {
    let mut talk = talk();
    let pasted = "'/tmp/a shot.png'";
    let asked = talk.input(Input::Paste(pasted.into()));
    let expected = Request::ImageFile {
        path: "/tmp/a shot.png".into(),
        pasted: pasted.into(),
    };
    assert_eq!(asked, [Effect::Ask(expected)]);
    assert_eq!(talk.state.draft(), "");
    talk.input(Input::PasteText(pasted.into()));
    assert_eq!(talk.state.draft(), pasted);
    assert_eq!(talk.press("Ctrl-v"), [Effect::Ask(Request::ClipboardImage)]);
}

#[test]
fn an_image_is_a_chip_and_goes_with_the_prompt() {
    let mut talk = talk();
    talk.types("what is ");
    talk.input(Input::Image(image("shot\u{1b}[2J.png")));
    talk.types(" about?");
    let live = talk.live();
    assert!(
        live.contains("› what is [image 1: shot2J.png 120 KB] about?"),
        "{live}"
    );
    let words = "what is [image 1: shot2J.png 120 KB] about?";
    let effects = talk.press("Enter");
    assert_eq!(effects, sent(words, says(words, &["shot\u{1b}[2J.png"])));
    assert_eq!(talk.state.draft(), "");
    // Refused, or taken back: it is there again.
    talk.input(Input::Draft(words.into()));
    assert_eq!(talk.press("Enter")[1..], effects[1..]);
}

#[test]
fn an_image_that_is_erased_is_not_sent() {
    let mut talk = talk();
    talk.types("look");
    talk.input(Input::Image(image("a.png")));
    talk.press("Backspace");
    assert_eq!(talk.press("Enter"), sent("look", say("look")));
    talk.input(Input::Image(image("b.png")));
    talk.input(Input::Image(image("a.png")));
    let words = "[image 2: b.png 120 KB][image 3: a.png 120 KB]";
    assert_eq!(
        talk.press("Enter"),
        sent(words, says(words, &["b.png", "a.png"]))
    );
}

#[test]
fn a_line_has_the_images_that_were_put_in_before_it() {
    let mut talk = talk();
    let line = |text: &str| Input::Line(text.into());
    let asked = talk.input(line("/image a.png"));
    let expected = Request::ImageFile {
        path: "a.png".into(),
        pasted: String::new(),
    };
    assert_eq!(asked[1..], [Effect::Ask(expected)]);
    talk.input(Input::Image(image("a.png")));
    talk.input(line("/context"));
    let words = "[image 1: a.png 120 KB] what is it?";
    assert_eq!(
        talk.input(line("what is it?")),
        sent(words, says(words, &["a.png"]))
    );
}
