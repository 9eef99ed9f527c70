//! Random 4 KiB reads a second, by reads in flight.
//!
//! `cargo run --release -p sapwood-disk --example reads -- FOLDER [MIB]` writes a file of MIB
//! (default 4096) and prints the rate by reads in flight, and
//! what verifying a block costs. The file stays, for the next run.

use std::error::Error;
use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sapwood_disk::{BLOCK_BYTES, Blocks, Disk, FileDisk, Read, checksum};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: reads FOLDER [MIB]")?;
    let mib: u64 = arguments.next().map_or(Ok(4096), |mib| mib.parse())?;
    let disk = FileDisk::open(folder)?;
    println!("{} direct: {}", disk.place(), disk.direct());
    let name = format!("reads-{mib}.data");
    let file = match disk.open(&name) {
        Ok(file) => file,
        Err(_) => {
            let file = disk.create(&name)?;
            let mut piece = Blocks::new(1 << 20);
            for number in 0..mib {
                piece.bytes_mut().fill(number as u8 | 1);
                file.write_at(number << 20, &piece)?;
            }
            file.sync()?;
            file
        }
    };
    let block_count = (mib << 20) / BLOCK_BYTES as u64;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for in_flight in [1, 8, 32, 128, 1, 8, 32, 128] {
        let mut buffers = vec![Blocks::new(BLOCK_BYTES); in_flight];
        let (mut count, mut sum) = (0u64, 0u64);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(2) {
            let mut reads: Vec<Read<'_>> = buffers
                .iter_mut()
                .map(|into| {
                    let offset = rng.random_range(0..block_count) * BLOCK_BYTES as u64;
                    Read { file: &*file, offset, into, result: Ok(()) }
                })
                .collect();
            disk.read_many(&mut reads);
            for read in reads {
                read.result?;
                sum += u64::from(read.into.bytes()[7]);
            }
            count += in_flight as u64;
        }
        let rate = count as f64 / begin.elapsed().as_secs_f64() / 1e3;
        println!("{in_flight:4} in flight: {rate:6.1} K reads/s   (mean byte {})", sum / count);
    }
    let block = Blocks::new(BLOCK_BYTES);
    let begin = Instant::now();
    let mut sum = 0;
    for _ in 0..100_000 {
        sum ^= checksum(std::hint::black_box(block.bytes()));
    }
    println!("checksum of a block: {} ns   ({sum})", begin.elapsed().as_nanos() / 100_000);
    Ok(())
}
