// Moving on the map: by pointer, by wheel, by two fingers, by keys.

const STEP = 60; // pixels an arrow key moves
const REACH = 14; // pixels from a point that still count as on it
const ZOOM = 1.35;

/** Listen to a canvas; returns how to stop. */
export function steer(canvas, plane, act) {
  const pointers = new Map();
  let travelled = 0;
  let spread = 0;

  const at = (event) => {
    const edge = canvas.getBoundingClientRect();
    return { x: event.clientX - edge.left, y: event.clientY - edge.top };
  };
  const between = () => {
    const [a, b] = [...pointers.values()];
    return { far: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };

  const listeners = {
    pointerdown(event) {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      travelled = 0;
      if (pointers.size === 2) spread = between().far;
    },
    pointermove(event) {
      const now = at(event);
      const before = pointers.get(event.pointerId);
      if (!before) {
        act.choose(plane.nearest(now.x, now.y, REACH));
        return;
      }
      pointers.set(event.pointerId, now);
      travelled += Math.hypot(now.x - before.x, now.y - before.y);
      plane.pan((before.x - now.x) / pointers.size, (before.y - now.y) / pointers.size);
      if (pointers.size === 2) {
        const middle = between();
        plane.zoomAt(middle.far / (spread || middle.far), middle.x, middle.y);
        spread = middle.far;
      }
      act.moved();
    },
    pointerup(event) {
      const now = at(event);
      pointers.delete(event.pointerId);
      if (travelled > 5) return;
      const point = plane.nearest(now.x, now.y, REACH);
      act.choose(point);
      if (point >= 0) act.open(point);
    },
    pointercancel: (event) => pointers.delete(event.pointerId),
    pointerleave: () => pointers.size || act.choose(-1),
    wheel(event) {
      event.preventDefault();
      const { x, y } = at(event);
      const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
      plane.zoomAt(Math.exp(-Math.max(-200, Math.min(200, pixels)) * 0.003), x, y);
      act.moved();
    },
    keydown(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const work = keys[event.key];
      if (!work) return;
      event.preventDefault();
      work();
    },
  };

  /** After moving by keys, what is in the middle is chosen. */
  const moved = () => {
    act.moved();
    act.choose(plane.nearest(plane.width / 2, plane.height / 2), true);
  };
  const toHit = (step) => {
    const hits = act.hits();
    if (!hits.length) return;
    const here = hits.indexOf(act.chosen());
    const next =
      hits[here < 0 ? (step > 0 ? 0 : hits.length - 1) : (here + step + hits.length) % hits.length];
    plane.show(next, plane.zoom);
    act.moved();
    act.choose(next, true);
  };
  const keys = {
    ArrowLeft: () => (plane.pan(-STEP, 0), moved()),
    ArrowRight: () => (plane.pan(STEP, 0), moved()),
    ArrowUp: () => (plane.pan(0, -STEP), moved()),
    ArrowDown: () => (plane.pan(0, STEP), moved()),
    "+": () => (plane.zoomAt(ZOOM), moved()),
    "=": () => (plane.zoomAt(ZOOM), moved()),
    "-": () => (plane.zoomAt(1 / ZOOM), moved()),
    0: () => (plane.fit(), moved()),
    n: () => toHit(1),
    p: () => toHit(-1),
    Enter: () => act.chosen() >= 0 && act.open(act.chosen()),
    Escape: () => act.choose(-1),
  };
  for (const [name, listen] of Object.entries(listeners))
    canvas.addEventListener(name, listen, { passive: false });
  return () => {
    for (const [name, listen] of Object.entries(listeners)) canvas.removeEventListener(name, listen);
  };
}
