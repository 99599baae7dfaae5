//! wget as a second opinion, where it is installed.

use std::process::{Command, Stdio};

use super::site::Site;

/// Whether wget is there.
pub(crate) fn is_installed() -> bool {
    let mut probe = Command::new("wget");
    let probe = probe
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Lets wget fetch all it finds; what that was is in the site's log.
pub(crate) fn fetch(site: &Site) {
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new("wget")
        .args([
            "--no-config",
            "--recursive",
            "--level=inf",
            "--execute=robots=off",
        ])
        .args(["--delete-after", "--quiet", "--tries=1", "--no-proxy"])
        .arg("--directory-prefix")
        .arg(dir.path())
        .arg(site.url("/"))
        .env_remove("WGETRC")
        .stdin(Stdio::null())
        .status()
        .unwrap();
    // 8: some pages were missing, which the comparison shows by itself.
    assert!(
        matches!(status.code(), Some(0 | 8)),
        "wget ended with {status}"
    );
}
