//! The active window of a slot: the places for orders that may be with its host at once. TransIds name them.

use std::net::IpAddr;

use orbweaver_model::{Timestamp, TransId, UrlKey};

use crate::origins::RobotsJob;
use orbweaver_turns::{Home, Speed};

/// An order that is out.
#[derive(Debug)]
pub(crate) struct Out {
    /// The URL; none for a robots.txt, which is in no index.
    pub(crate) key: Option<UrlKey>,
    pub(crate) ip: IpAddr,
    /// When the order was made.
    pub(crate) since: Timestamp,
    /// The kind of host that holds the place: slow as soon as it has outstayed.
    pub(crate) speed: Speed,
    /// The neighbourhoods that hold it.
    pub(crate) home: Home,
    /// The spider has been told to give it up.
    pub(crate) is_given_up: bool,
    /// The request is known to be written.
    pub(crate) announced: bool,
    /// It was lost, and waits to be sent again.
    pub(crate) lost: bool,
    /// For a robots.txt, what it is for.
    pub(crate) job: Option<Box<RobotsJob>>,
}

/// A place of the window.
#[derive(Debug, Default)]
struct Place {
    /// How often it was used; a late answer names an older number.
    generation: u32,
    out: Option<Out>,
}

/// The window of one slot. It outlives the hosts of the slot, so that a late answer to an order of one host is never
/// taken for one of another.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// The first place is in the window itself: most windows have no other, and an order then needs no further piece of
    /// memory.
    first: Place,
    others: Vec<Place>,
    active: u16,
}

impl Window {
    /// Makes room for at least so many orders at once. Places never go, for a late answer may still name them.
    pub(crate) fn grow(&mut self, places: u16) {
        let others = usize::from(places.saturating_sub(1));
        if others > self.others.len() {
            self.others.resize_with(others, Place::default);
        }
    }

    /// Orders that are out.
    pub(crate) fn active(&self) -> usize {
        usize::from(self.active)
    }

    /// Every order that is out.
    #[cfg(debug_assertions)]
    pub(crate) fn outs(&self) -> impl Iterator<Item = &Out> {
        self.places().filter_map(|place| place.out.as_ref())
    }

    /// The order of a page, and its name in the slot of that number.
    pub(crate) fn order_of(&self, key: UrlKey, slot: u32) -> Option<(TransId, &Out)> {
        (0..).zip(self.places()).find_map(|(active, place)| {
            let out = place.out.as_ref()?;
            let trans = TransId {
                generation: place.generation,
                slot,
                active,
            };
            (out.key == Some(key)).then_some((trans, out))
        })
    }

    /// Takes a free place for an order of the slot of that number.
    pub(crate) fn occupy(&mut self, slot: u32, out: Out) -> Option<TransId> {
        let (active, place) = std::iter::once(&mut self.first)
            .chain(&mut self.others)
            .enumerate()
            .find(|(_, place)| place.out.is_none())?;
        self.active += 1;
        place.generation = place.generation.wrapping_add(1);
        place.out = Some(out);
        Some(TransId {
            generation: place.generation,
            slot,
            // A window is counted in 16 bits.
            active: active as u16,
        })
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn place(&mut self, trans: TransId) -> Option<&mut Place> {
        let place = match trans.active.checked_sub(1) {
            None => &mut self.first,
            Some(other) => self.others.get_mut(usize::from(other))?,
        };
        (place.generation == trans.generation).then_some(place)
    }

    /// The order of that name, unless it is over.
    pub(crate) fn out(&mut self, trans: TransId) -> Option<&mut Out> {
        self.place(trans)?.out.as_mut()
    }

    /// Another name for an order that is sent again, so that an answer to the old one is known as late.
    pub(crate) fn rename(&mut self, trans: TransId) -> Option<TransId> {
        let place = self.place(trans).filter(|place| place.out.is_some())?;
        place.generation = place.generation.wrapping_add(1);
        Some(TransId {
            generation: place.generation,
            ..trans
        })
    }

    /// Frees the place of an order.
    pub(crate) fn vacate(&mut self, trans: TransId) -> Option<Out> {
        let out = self.place(trans)?.out.take()?;
        self.active -= 1;
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orbweaver_turns::Neighbourhood;

    fn out(url: u64) -> Out {
        Out {
            key: Some(UrlKey { host: 1, url }),
            ip: IpAddr::from([10, 0, 0, 1]),
            since: Timestamp::default(),
            speed: Speed::New,
            home: [Neighbourhood::Network(1); 2],
            is_given_up: false,
            announced: false,
            lost: false,
            job: None,
        }
    }

    #[test]
    fn a_place_that_is_used_again_has_another_name() {
        let mut window = Window::default();
        let first = window.occupy(7, out(1)).unwrap();
        assert!(window.occupy(7, out(2)).is_none(), "one place");
        assert_eq!(window.vacate(first).unwrap().key, out(1).key);
        assert!(window.vacate(first).is_none() && window.out(first).is_none());
        let second = window.occupy(7, out(2)).unwrap();
        assert_ne!(first, second);
        assert!(window.out(first).is_none(), "the answer is late");
        let renamed = window.rename(second).unwrap();
        assert!(window.out(second).is_none() && window.rename(second).is_none());
        assert_eq!(
            window
                .order_of(out(2).key.unwrap(), 7)
                .map(|(trans, _)| trans),
            Some(renamed)
        );
        assert_eq!(window.active(), 1);
    }

    #[test]
    fn a_window_grows_and_never_shrinks() {
        let mut window = Window::default();
        window.grow(3);
        let names: Vec<_> = (0..3).map(|n| window.occupy(7, out(n)).unwrap()).collect();
        assert_eq!(
            names.iter().map(|name| name.active).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        assert!(window.occupy(7, out(9)).is_none());
        window.grow(1);
        assert!(names.iter().all(|name| window.vacate(*name).is_some()));
        assert_eq!(window.active(), 0);
    }
}
