//! Who gets the next place, and how many a neighbourhood or a kind of host may hold.

use super::*;

fn home(network: u64, domain: u64) -> Home {
    [
        Neighbourhood::Network(network),
        Neighbourhood::Domain(domain),
    ]
}

#[test]
fn neighbourhoods() {
    let network = |ip: &str| Neighbourhood::network(ip.parse().unwrap());
    assert_eq!(network("192.0.2.1"), network("192.0.2.254"));
    assert_ne!(network("192.0.2.1"), network("192.0.3.1"));
    assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:ffff::1"));
    assert_ne!(network("2001:db8:1::1"), network("2001:db8:2::1"));
    let domain = Neighbourhood::domain;
    assert_eq!(domain("a.example.org"), domain("b.c.example.org"));
    assert_ne!(domain("a.github.io"), domain("b.github.io"));
    assert_ne!(domain("127.0.0.1"), domain("127.0.0.2"));
    assert_ne!(domain("[::1]"), domain("[::2]"));
}

/// The neighbourhood with the fewest places goes first, whether its hosts share a network or a domain.
#[test]
fn a_crowd_has_no_more_than_its_part() {
    let farms: [fn(u64) -> Home; 2] = [|n| home(7, 100 + n), |n| home(100 + n, 7)];
    for farm in farms {
        let mut places = Places::new(100, 1);
        for n in 0..200 {
            places.wait(Speed::New, farm(n), n);
        }
        for n in 0..40 {
            places.take(Speed::New, farm(n));
        }
        for n in 0..10 {
            places.wait(Speed::New, home(1000 + n, 1000 + n), 1000 + n);
        }
        let next: Vec<u64> = (0..10).filter_map(|_| places.next_turn()).collect();
        assert_eq!(next, (1000..1010).collect::<Vec<_>>());
        assert_eq!(places.next_turn(), Some(0), "nobody else waits");
    }
}

#[test]
fn slow_hosts_leave_places_to_others_and_use_them_all_when_there_are_none() {
    let mut places = Places::new(100, 1);
    let serve = |places: &mut Places<u64>| {
        let mut served = 0;
        while let Some(n) = places.next_turn() {
            places.take(Speed::Slow, home(n, n));
            served += 1;
        }
        served
    };
    for n in 0..300 {
        places.came(Speed::Slow);
        places.wait(Speed::Slow, home(n, n), n);
    }
    places.came(Speed::Fast);
    places.came(Speed::New);
    assert_eq!(serve(&mut places), 98);
    places.wait(Speed::Fast, home(1000, 1000), 1000);
    assert_eq!(places.next_turn(), Some(1000));
    places.left(Speed::Fast);
    places.left(Speed::New);
    assert_eq!(serve(&mut places), 2);
    // What slow hosts have beyond their part is wanted back, as far as others wait.
    for n in 0..300 {
        places.came(Speed::New);
        places.wait(Speed::New, home(n, n), n);
    }
    assert_eq!(places.wanted_back(), 75);
}

/// Whatever waits, every kind gets something.
#[test]
fn nobody_waits_for_ever() {
    for all in [1, 2, 7, 64, 512] {
        let mut places = Places::new(all, 1);
        let mut served = [0; 3];
        // Otherwise fast and new ones are the same.
        places.came(Speed::Slow);
        for speed in SPEEDS {
            (0..1000).for_each(|_| places.came(speed));
            places.wait(speed, home(speed as u64, speed as u64), speed);
        }
        let mut out = VecDeque::new();
        for _ in 0..20_000 {
            while let Some(speed) = places.next_turn() {
                served[speed as usize] += 1;
                let home = home(speed as u64, speed as u64);
                places.take(speed, home);
                places.wait(speed, home, speed);
                out.push_back((speed, home));
            }
            if let Some((speed, home)) = out.pop_front() {
                places.free(speed, home);
            }
        }
        assert!(served.iter().all(|times| *times > 100), "{all}: {served:?}");
        if all >= 64 {
            assert!(served[0] > 10_000, "{all}: fast hosts go first: {served:?}");
        }
    }
}

#[test]
fn what_is_usual_is_what_the_quick_ones_take() {
    let mut usual = Usual::new(512);
    assert_eq!(usual.patience(), Duration::from_millis(1200));
    // Many slow hosts do not make slowness usual while there are some that are quick.
    for n in 0..10_000 {
        usual.saw(Duration::from_millis(if n % 4 == 0 { 20 } else { 5000 }));
    }
    assert_eq!(usual.patience(), LEAST);
    // A network on which everything takes long does.
    for _ in 0..2000 {
        usual.saw(Duration::from_secs(3));
    }
    assert_eq!(usual.patience(), MOST);
    assert_eq!(Usual::new(8).patience(), LEAST_OF_FEW);
}
