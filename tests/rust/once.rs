//! Acquires and releases a lock at REDLOCKD_URL.

fn main() -> Result<(), redlockd_client::Error> {
    let client = redlockd_client::Client::from_env()?;
    client.lock("a").acquire()?.release()?;
    println!("released");
    Ok(())
}
