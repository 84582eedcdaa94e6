use super::*;
use crate::network_bed::queue::Discipline;
use crate::network_bed::shaper::Rate;
use crate::network_bed::trace::Trace;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

fn shape(mbit: f64, discipline: Discipline) -> LinkShape {
    LinkShape {
        rate: Rate::BitPerS(mbit * 1e6),
        discipline,
        buffer: Duration::from_millis(300),
        delay: Duration::from_millis(5),
        loss: 0.0,
    }
}

fn bed(discipline: Discipline) -> Option<Bed> {
    match Bed::new(2, shape(20.0, discipline), shape(5.0, discipline), 1) {
        Ok(bed) => Some(bed),
        Err(BedError::Namespace(error)) => {
            assay_testing::skipped("root", error);
            None
        }
        Err(BedError::Tun(error)) => {
            assay_testing::skipped("tun", error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the median round-trip time of UDP packets in milliseconds while the other client downloads, and the number
/// of downloaded bytes.
fn under_load(bed: &Bed) -> (f64, u64) {
    let echo = bed
        .server()
        .inside(|| UdpSocket::bind((SERVER, 9)))
        .unwrap()
        .unwrap();
    let listener = bed
        .server()
        .inside(|| TcpListener::bind((SERVER, 80)))
        .unwrap()
        .unwrap();
    let server = SocketAddr::from((SERVER, 80));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            echo.set_read_timeout(Some(Duration::from_millis(100)))
                .unwrap();
            let mut buffer = [0; 100];
            while !stop.load(Ordering::SeqCst) {
                if let Ok((length, from)) = echo.recv_from(&mut buffer) {
                    let _ = echo.send_to(&buffer[..length], from);
                }
            }
        });
        let sender = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let bytes = vec![7; 65536];
            while !stop.load(Ordering::SeqCst) {
                if stream.write_all(&bytes).is_err() {
                    break;
                }
            }
        });
        let mut stream = bed
            .person(0)
            .unwrap()
            .inside(|| TcpStream::connect(server))
            .unwrap()
            .unwrap();
        let receiver = scope.spawn(move || {
            let (mut buffer, mut all) = (vec![0; 65536], 0u64);
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_secs(5) {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => all += n as u64,
                }
            }
            all
        });
        let socket = bed
            .person(1)
            .unwrap()
            .inside(|| UdpSocket::bind("0.0.0.0:0"))
            .unwrap()
            .unwrap();
        socket.connect((SERVER, 9)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        // Wait until the queue is full.
        thread::sleep(Duration::from_millis(2500));
        let mut times: Vec<f64> = (0..20)
            .map(|_| {
                let begin = Instant::now();
                socket.send(&[1; 50]).unwrap();
                let mut buffer = [0; 100];
                let came = socket.recv(&mut buffer);
                thread::sleep(Duration::from_millis(20));
                came.map_or(2000.0, |_| begin.elapsed().as_secs_f64() * 1e3)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let all = receiver.join().unwrap();
        stop.store(true, Ordering::SeqCst);
        sender.join().unwrap();
        (times[10], all)
    })
}

#[test]
fn a_plain_queue_fills_and_fq_codel_keeps_others_out_of_it() {
    let Some(plain) = bed(Discipline::Fifo) else {
        return;
    };
    let (slow, bytes) = under_load(&plain);
    let (through, _, _) = plain.counters().0.read();
    drop(plain);
    let (fast, _) = under_load(&bed(Discipline::FqCodel).unwrap());
    // The path takes 10 ms; the queue holds 300 ms.
    assert!(slow > 100.0 && fast < slow / 3.0, "{slow} {fast}");
    assert!(through > bytes, "{through} went through, {bytes} came");
    // 20 Mbit/s for about five seconds.
    assert!((4_000_000..=16_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let good = shape(1.0, Discipline::Fifo);
    for (people, bad) in [
        (0, good.clone()),
        (PEOPLE + 1, good.clone()),
        (
            1,
            LinkShape {
                rate: Rate::BitPerS(f64::NAN),
                ..good.clone()
            },
        ),
        (
            1,
            LinkShape {
                loss: 1.0,
                ..good.clone()
            },
        ),
        (
            1,
            LinkShape {
                delay: Duration::from_secs(100),
                ..good.clone()
            },
        ),
    ] {
        assert!(matches!(
            Bed::new(people, bad, good.clone(), 0),
            Err(BedError::Meaning(_))
        ));
    }
}

/// Returns a recording that alternates between one second at 12 Mbit/s and one second at 1.2 Mbit/s.
fn recording() -> Arc<Trace> {
    let fast = 1..=1000;
    let slow = (1010..=2000).step_by(10);
    let text: String = fast.chain(slow).map(|ms| format!("{ms}\n")).collect();
    Arc::new(Trace::read(text.as_bytes()).unwrap())
}

#[test]
fn a_recorded_link_lets_through_what_was_recorded() {
    let down = LinkShape {
        rate: Rate::Recorded(recording()),
        ..shape(20.0, Discipline::Fifo)
    };
    let bed = match Bed::new(1, down, shape(20.0, Discipline::Fifo), 1) {
        Ok(bed) => bed,
        Err(error @ (BedError::Namespace(_) | BedError::Tun(_))) => {
            assay_testing::skipped("root", error);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let stop = AtomicBool::new(false);
    let socket = bed
        .server()
        .inside(|| UdpSocket::bind((SERVER, 9)))
        .unwrap()
        .unwrap();
    thread::scope(|scope| {
        // More than the link can carry, in packets of 1500 bytes with headers.
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                for _ in 0..20 {
                    let _ = socket.send_to(&[7; 1472], (Bed::address(0), 9));
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        // Wait until the queue is full.
        thread::sleep(Duration::from_millis(1500));
        let read = || (Instant::now(), bed.counters().0.read().0);
        let (begin, before) = read();
        // Whole periods, so that the start position does not matter.
        thread::sleep(Duration::from_millis(8000));
        let (end, after) = read();
        stop.store(true, Ordering::SeqCst);
        // The sleep may be longer on a busy machine; the extra time counts at most at the fast rate.
        let over = (end - begin).as_secs_f64() - 8.0;
        let wanted = recording().bit_per_s() / 8.0 * 8.0;
        let got = (after - before) as f64;
        println!("{got} bytes of {wanted} recorded ones, {over:.4} s late");
        let least = wanted * 0.98;
        let most = wanted * 1.02 + over * 12e6 / 8.0;
        assert!((least..=most).contains(&got), "{got} {wanted} {over}");
    });
}
