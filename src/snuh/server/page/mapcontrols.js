// Pan, zoom and selection on the map by pointer, wheel, touch and keyboard.

const PAN_STEP = 60; // pixels per arrow key
const HIT_RADIUS = 14; // pixels around a point
const ZOOM_STEP = 1.35;

/** Add the listeners to a canvas; return a function that removes them. */
export function addMapControls(canvas, projection, actions) {
  const pointers = new Map();
  let dragged = 0; // pixels
  let pinch = 0; // pixels between two fingers
  let lasso = null; // the positions of the pointer while a selection is drawn

  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const fingers = () => {
    const [a, b] = [...pointers.values()];
    return { distance: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };

  const listeners = {
    pointerdown(event) {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, position(event));
      dragged = 0;
      if (pointers.size === 2) pinch = fingers().distance;
      const isSelecting = pointers.size === 1 && (event.shiftKey || actions.isSelecting());
      lasso = isSelecting ? [position(event)] : null;
      actions.drawLasso(lasso ?? []);
    },
    pointermove(event) {
      const now = position(event);
      const before = pointers.get(event.pointerId);
      if (!before) {
        actions.select(projection.nearest(now.x, now.y, HIT_RADIUS));
        return;
      }
      pointers.set(event.pointerId, now);
      dragged += Math.hypot(now.x - before.x, now.y - before.y);
      if (lasso) {
        lasso.push(now);
        actions.drawLasso(lasso);
        return;
      }
      projection.pan((before.x - now.x) / pointers.size, (before.y - now.y) / pointers.size);
      if (pointers.size === 2) {
        const middle = fingers();
        projection.zoomAt(middle.distance / (pinch || middle.distance), middle.x, middle.y);
        pinch = middle.distance;
      }
      actions.moved();
    },
    pointerup(event) {
      const now = position(event);
      pointers.delete(event.pointerId);
      const polygon = lasso;
      lasso = null;
      actions.drawLasso([]);
      if (dragged > 5) {
        if (polygon) actions.pick(projection.inside(polygon));
        return;
      }
      const point = projection.nearest(now.x, now.y, HIT_RADIUS);
      actions.select(point);
      if (point >= 0) actions.open(point);
    },
    pointercancel(event) {
      pointers.delete(event.pointerId);
      lasso = null;
      actions.drawLasso([]);
    },
    pointerleave: () => pointers.size || actions.select(-1),
    wheel(event) {
      event.preventDefault();
      const { x, y } = position(event);
      const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
      projection.zoomAt(Math.exp(-Math.max(-200, Math.min(200, pixels)) * 0.003), x, y);
      actions.moved();
    },
    keydown(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const command = keys[event.key];
      if (!command) return;
      event.preventDefault();
      command();
    },
  };

  /** After keyboard navigation, select the point nearest to the centre. */
  const selectCentre = () => {
    actions.moved();
    actions.select(projection.nearest(projection.width / 2, projection.height / 2), true);
  };
  const toHit = (step) => {
    const hits = actions.hits();
    if (!hits.length) return;
    const index = hits.indexOf(actions.selected());
    const next =
      hits[index < 0 ? (step > 0 ? 0 : hits.length - 1) : (index + step + hits.length) % hits.length];
    projection.show(next, projection.zoom);
    actions.moved();
    actions.select(next, true);
  };
  const keys = {
    ArrowLeft: () => (projection.pan(-PAN_STEP, 0), selectCentre()),
    ArrowRight: () => (projection.pan(PAN_STEP, 0), selectCentre()),
    ArrowUp: () => (projection.pan(0, -PAN_STEP), selectCentre()),
    ArrowDown: () => (projection.pan(0, PAN_STEP), selectCentre()),
    "+": () => (projection.zoomAt(ZOOM_STEP), selectCentre()),
    "=": () => (projection.zoomAt(ZOOM_STEP), selectCentre()),
    "-": () => (projection.zoomAt(1 / ZOOM_STEP), selectCentre()),
    0: () => (projection.fit(), selectCentre()),
    n: () => toHit(1),
    p: () => toHit(-1),
    Enter: () => actions.selected() >= 0 && actions.open(actions.selected()),
    Escape: () => (actions.select(-1), actions.pick([])),
  };
  for (const [name, listener] of Object.entries(listeners))
    canvas.addEventListener(name, listener, { passive: false });
  return () => {
    for (const [name, listener] of Object.entries(listeners)) canvas.removeEventListener(name, listener);
  };
}
