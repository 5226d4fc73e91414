//! What the user says: a text from the command line or standard input, and images.

use std::{
    ffi::OsString,
    fs,
    io::{IsTerminal as _, Read as _},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use turnbuckle_errors::Failure;
use turnbuckle_providers::Image;

use crate::refusal::invalid;

/// What is asked for when a session goes on without a word.
const GO_ON: &str = "Go on where you stopped.";

/// The largest image. No provider of the table takes a larger one in a request; most
/// take less, and say so themselves.
const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;

/// What to do. A session that goes on needs none: what is left out, or empty on
/// standard input, asks the model to go on.
pub(crate) fn text(given: Option<OsString>, resumes: bool) -> Result<String, Failure> {
    let not_text = || invalid("the prompt is not valid UTF-8; save it as UTF-8");
    let may_be_left_out = resumes && given.is_none();
    let text = match given {
        Some(given) if given != "-" => given.into_string().map_err(|_| not_text())?,
        None if resumes && std::io::stdin().is_terminal() => GO_ON.to_owned(),
        _ => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|error| invalid(&format!("standard input cannot be read: {error}")))?;
            String::from_utf8(bytes).map_err(|_| not_text())?
        }
    };
    if text.trim().is_empty() && may_be_left_out {
        return Ok(GO_ON.to_owned());
    }
    if text.trim().is_empty() {
        return Err(invalid(
            "the prompt is empty; say what to do, as in: turnbuckle run \"explain this folder\"",
        ));
    }
    Ok(text)
}

/// An image of a file, of a kind that every provider of the table takes.
pub(crate) fn image(path: &Path) -> Result<Image, Failure> {
    let refuse = |why: String| invalid(&format!("the image {} {why}", path.display()));
    let unreadable = |error: std::io::Error| refuse(format!("cannot be read: {error}"));
    let about = fs::metadata(path).map_err(unreadable)?;
    // A FIFO would never end.
    if !about.is_file() {
        return Err(refuse("is no file".to_owned()));
    }
    if about.len() > MAX_IMAGE_BYTES {
        let limit = MAX_IMAGE_BYTES / 1024 / 1024;
        return Err(refuse(format!("is larger than {limit} MiB; make it smaller")));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let media_type = media_type(&bytes)
        .ok_or_else(|| refuse("is no PNG, JPEG, GIF or WebP; convert it to one".to_owned()))?;
    Ok(Image { media_type: media_type.to_owned(), base64: STANDARD.encode(bytes) })
}

/// By the first bytes: a name can lie.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn an_empty_or_foreign_prompt_is_refused() {
        assert!(message(text(Some(" \n".into()), true)).contains("the prompt is empty"));
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStringExt as _;
            let foreign = OsString::from_vec(vec![0x66, 0xff]);
            assert!(message(text(Some(foreign), false)).contains("UTF-8"));
        }
    }

    #[test]
    fn an_image_is_known_by_its_bytes_and_anything_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            image(&path)
        };
        for (bytes, media_type) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], "image/png"),
            (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
            (b"GIF89arest", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        ] {
            let image = of("wrong.txt", bytes).unwrap();
            assert_eq!(
                (image.media_type.as_str(), image.base64),
                (media_type, STANDARD.encode(bytes))
            );
        }
        assert!(message(of("a.png", b"not one")).contains("is no PNG, JPEG, GIF or WebP"));
        assert!(message(image(folder.path())).contains("is no file"));
        assert!(message(image(&folder.path().join("gone.png"))).contains("cannot be read"));
        let large = fs::File::create(folder.path().join("large.png")).unwrap();
        large.set_len(MAX_IMAGE_BYTES + 1).unwrap();
        let said = message(image(&folder.path().join("large.png")));
        assert!(said.contains("larger than 20 MiB"), "{said}");
    }
}
