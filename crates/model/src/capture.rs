//! Where a capture lies in the archive, and where it stands among the results.

use serde::{Deserialize, Serialize};

/// The place of one capture: enough to read it without any index of the archive.
///
/// It is kept with every archived URL, of which there may be a thousand million, so a file is named by its serial
/// number and not by its name: about seven bytes in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CapturePlace {
    /// The serial number of the WARC file, which is part of its name and never given twice in an archive.
    pub file: u32,
    /// Where the record of the response, or of the revisit, begins in that file.
    pub offset: u64,
}

/// What the archive says of an exchange that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    /// Where it lies.
    pub place: CapturePlace,
    /// Its position among the results. An event that carries it is folded after those of all results before it.
    pub position: u64,
}
