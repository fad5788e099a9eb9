//! A minimal client, as a baseline for measuring posse's adapters.

use serde::Deserialize;

use crate::scripted::SetupError;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
}

/// Sends a request and reads its stream with the bare minimum: lines, JSON, text.
pub async fn read(request: reqwest::RequestBuilder) -> Result<String, SetupError> {
    let mut response = request.send().await?.error_for_status()?;
    let (mut buffer, mut text, mut ended) = (Vec::new(), String::new(), false);
    while let Some(chunk) = response.chunk().await? {
        buffer.extend_from_slice(&chunk);
        let mut start = 0;
        while let Some(end) = buffer[start..].iter().position(|byte| *byte == b'\n') {
            if let Some(data) = buffer[start..start + end].strip_prefix(b"data: ") {
                let event: Event<'_> = serde_json::from_slice(data)?;
                ended |= event.kind == "message_stop";
                if let Some(more) = event.delta.and_then(|delta| delta.text) {
                    text.push_str(&more);
                }
            }
            start += end + 1;
        }
        buffer.drain(..start);
    }
    if ended {
        Ok(text)
    } else {
        Err("the stream was cut".into())
    }
}
