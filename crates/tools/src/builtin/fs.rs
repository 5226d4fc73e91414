//! The one door to files: open without hanging, load with a bound, store whole.

use std::{
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::fchown,
};

use cap_fs_ext::{
    FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsMaybeDirExt as _, OpenOptionsSyncExt as _,
};
use cap_std::fs::{Dir, File, Metadata, MetadataExt as _, OpenOptions};
use cap_tempfile::TempFile;
use rustix::fs::{Access, AtFlags};
use turnbuckle_errors::ErrorCode;

use super::{
    Stop,
    workspace::{Place, Workspace, require_file},
};
use crate::ToolError;

/// The largest file that is held whole in memory, in bytes.
pub(crate) const LARGEST: u64 = 64 * 1024 * 1024;

/// How many small pieces are written at once, in bytes.
const GATHERED: usize = 64 * 1024;

/// Opens a regular file for reading.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for anything but a regular file, `TOOL_FAILED` where the
/// system refuses.
pub(crate) fn open(workspace: &Workspace, path: &str) -> Result<(File, Metadata), ToolError> {
    let refused = |error: io::Error| refused(&format!("cannot read `{path}`"), &error);
    let mut options = OpenOptions::new();
    // Links are resolved already, and a pipe put here since then must not hang us.
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    let file = workspace.dir().open_with(path, &options).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    require_file(path, &metadata)?;
    Ok((file, metadata))
}

/// Reads a whole file.
///
/// # Errors
///
/// Those of [`open`], and `TOOL_FAILED` for a file over [`LARGEST`].
pub(crate) fn load(workspace: &Workspace, path: &str) -> Result<(Vec<u8>, Metadata), ToolError> {
    let (file, metadata) = open(workspace, path)?;
    // Room for the whole and one byte more, at which the end is seen.
    let size = usize::try_from(metadata.len().min(LARGEST)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(size + 1);
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refused(&format!("cannot read `{path}`"), &error))?;
    if bytes.len() as u64 > LARGEST {
        let text = format!(
            "`{path}` is larger than {} MiB, too large to change here; use a program made for it",
            LARGEST >> 20
        );
        return Err(ToolError::new(ErrorCode::ToolFailed, text));
    }
    Ok((bytes, metadata))
}

/// How a file was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// A new file took the place of the old one in one step.
    Replaced,
    /// The bytes were written into the file itself, after a backup.
    InPlace(&'static str),
}

impl Stored {
    /// A remark for the result of a tool; empty for the usual way.
    pub(crate) fn remark(self) -> String {
        match self {
            Self::Replaced => String::new(),
            Self::InPlace(why) => format!("; written in place because {why}"),
        }
    }
}

/// Why a file was not stored. Nothing was changed.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// Another program changed, made or removed the file since it was looked at.
    Changed,
    /// Everything else.
    Failed(ToolError),
}

/// Stores a whole file, given in pieces: parents are made, then a sibling is written, synced and
/// renamed over it. `place.metadata` is what the bytes were planned on.
///
/// # Errors
///
/// [`StoreError`]; unless it says otherwise the file is as it was.
pub(crate) fn store(
    workspace: &Workspace,
    place: &Place,
    pieces: &[&[u8]],
    stop: &Stop,
) -> Result<Stored, StoreError> {
    let (folder, name) = place.split();
    let storing = format!("cannot write `{}`", place.path);
    let failed = |error: io::Error| StoreError::Failed(refused(&storing, &error));
    let dir = open_folder(workspace, folder).map_err(failed)?;
    if let Some(metadata) = &place.metadata {
        rustix::fs::accessat(&dir, name, Access::WRITE_OK, AtFlags::empty())
            .map_err(|error| failed(error.into()))?;
        if metadata.nlink() > 1 {
            check(&dir, name, place, stop, &storing)?;
            let _alone = workspace.unsteady();
            return write_in_place(&dir, name, pieces, "it has several hard links").map_err(failed);
        }
    }
    let mut file = TempFile::new(&dir).map_err(failed)?;
    if let Some(metadata) = &place.metadata
        && !adopt(file.as_file(), metadata).map_err(failed)?
    {
        drop(file);
        check(&dir, name, place, stop, &storing)?;
        let _alone = workspace.unsteady();
        return write_in_place(&dir, name, pieces, "its owner cannot be kept otherwise")
            .map_err(failed);
    }
    write_all(&mut file, pieces).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    check(&dir, name, place, stop, &storing)?;
    file.replace(name).map_err(failed)?;
    sync_folder(&dir).map_err(failed)?;
    Ok(Stored::Replaced)
}

/// A refusal of the system as an error for the model.
pub(crate) fn refused(doing: &str, error: &io::Error) -> ToolError {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "; check the permissions of the file and its folder",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space",
        io::ErrorKind::FileTooLarge => "; the system limits how large a file may be, write less",
        io::ErrorKind::ReadOnlyFilesystem => "; this file system cannot be written",
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            "; a file is in the way where a folder is needed"
        }
        _ => "",
    };
    ToolError::new(ErrorCode::ToolFailed, format!("{doing}: {error}{advice}"))
}

fn open_folder(workspace: &Workspace, folder: &str) -> io::Result<Dir> {
    match workspace.dir().open_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            workspace.dir().create_dir_all(folder)?;
            // The last folder is synced with what is put into it.
            for (end, _) in folder.match_indices('/') {
                let above = folder.get(..end).unwrap_or_default();
                sync_folder(&workspace.dir().open_dir(above)?)?;
            }
            sync_folder(workspace.dir())?;
            workspace.dir().open_dir(folder)
        }
        opened => opened,
    }
}

/// The last look before the change becomes visible.
fn check(
    dir: &Dir,
    name: &str,
    place: &Place,
    stop: &Stop,
    storing: &str,
) -> Result<(), StoreError> {
    stop.check().map_err(StoreError::Failed)?;
    let now = match dir.symlink_metadata(name) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(StoreError::Failed(refused(storing, &error))),
    };
    if now.as_ref().map(version) == place.metadata.as_ref().map(version) {
        Ok(())
    } else {
        Err(StoreError::Changed)
    }
}

/// What changes when a file is changed or replaced.
fn version(metadata: &Metadata) -> (u64, u64, u64, i64, i64) {
    let (seconds, nanos) = (metadata.mtime(), metadata.mtime_nsec());
    (metadata.dev(), metadata.ino(), metadata.len(), seconds, nanos)
}

/// Gives the new file the owner and the mode of the old one; false if the owner
/// cannot be given.
fn adopt(file: &File, old: &Metadata) -> io::Result<bool> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && fchown(file, Some(old.uid()), Some(old.gid())).is_err()
    {
        return Ok(false);
    }
    // After the owner: a change of owner clears the set-id bits.
    file.set_permissions(old.permissions())?;
    Ok(true)
}

fn write_in_place(
    dir: &Dir,
    name: &str,
    pieces: &[&[u8]],
    why: &'static str,
) -> io::Result<Stored> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).follow(FollowSymlinks::No).nonblock(true);
    let mut file = dir.open_with(name, &options)?;
    let mut old = Vec::new();
    file.read_to_end(&mut old)?;
    let backup = back_up(dir, name, &old)?;
    if let Err(error) = overwrite(&mut file, pieces) {
        // What was there has its room still, also on a full disk.
        if overwrite(&mut file, &[&old]).is_ok() {
            dir.remove_file(&backup)?;
            return Err(error);
        }
        let text = format!("{error}; the old content is in `{backup}` beside it");
        return Err(io::Error::new(error.kind(), text));
    }
    dir.remove_file(&backup)?;
    sync_folder(dir)?;
    Ok(Stored::InPlace(why))
}

/// Puts the old content into a synced sibling that only its owner can read.
fn back_up(dir: &Dir, name: &str, old: &[u8]) -> io::Result<String> {
    let hash = blake3::hash(old).to_hex();
    let short: String = hash.chars().take(12).collect();
    let stem: String = name.chars().take(40).collect();
    let backup = format!(".{stem}.{short}.backup");
    let mut copy = TempFile::new(dir)?;
    copy.as_file().set_permissions(private())?;
    copy.write_all(old)?;
    copy.as_file().sync_all()?;
    copy.replace(&backup)?;
    sync_folder(dir)?;
    Ok(backup)
}

fn private() -> cap_std::fs::Permissions {
    use cap_std::fs::PermissionsExt as _;
    cap_std::fs::Permissions::from_mode(0o600)
}

fn overwrite(file: &mut File, pieces: &[&[u8]]) -> io::Result<()> {
    file.rewind()?;
    write_all(file, pieces)?;
    let end = file.stream_position()?;
    file.set_len(end)?;
    file.sync_all()
}

/// Writes small pieces together and large ones as they are.
fn write_all(file: &mut impl io::Write, pieces: &[&[u8]]) -> io::Result<()> {
    let mut file = io::BufWriter::with_capacity(GATHERED, file);
    pieces.iter().try_for_each(|piece| file.write_all(piece))?;
    file.flush()
}

fn sync_folder(dir: &Dir) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).maybe_dir(true);
    dir.open_with(".", &options)?.sync_all()
}
