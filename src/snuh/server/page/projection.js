// Points in two dimensions and the visible part of them; independent of the page.

const MAX_ZOOM = 80;
const MARGIN = 32; // pixels around the points when all of them are visible
const minimum = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const maximum = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

export class Projection {
  width = 1;
  height = 1;

  constructor(x, y) {
    this.x = Float32Array.from(x);
    this.y = Float32Array.from(y);
    this.bounds = {
      left: minimum(this.x),
      right: maximum(this.x),
      bottom: minimum(this.y),
      top: maximum(this.y),
    };
    this.fit();
  }

  /** Pixels per unit. */
  get scale() {
    const { left, right, bottom, top } = this.bounds;
    const horizontal = Math.max(40, this.width - 2 * MARGIN) / Math.max(1e-3, right - left);
    const vertical = Math.max(40, this.height - 2 * MARGIN) / Math.max(1e-3, top - bottom);
    return this.zoom * Math.min(horizontal, vertical);
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
  }

  toScreen(point) {
    return this.screenOf(this.x[point], this.y[point]);
  }

  screenOf(x, y) {
    const scale = this.scale;
    return {
      x: (x - this.centre.x) * scale + this.width / 2,
      y: (this.centre.y - y) * scale + this.height / 2,
    };
  }

  /** Move the visible part by pixels. */
  pan(right, down) {
    const clamp = (value) => Math.max(-1, Math.min(1, value));
    this.centre.x = clamp(this.centre.x + right / this.scale);
    this.centre.y = clamp(this.centre.y - down / this.scale);
  }

  /** Zoom by a factor, with the point at (x, y) of the screen fixed. */
  zoomAt(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.scale;
    this.zoom = Math.max(1, Math.min(MAX_ZOOM, this.zoom * factor));
    const shift = 1 / before - 1 / this.scale;
    this.pan((x - this.width / 2) * shift * this.scale, (y - this.height / 2) * shift * this.scale);
  }

  fit() {
    const { left, right, bottom, top } = this.bounds;
    this.zoom = 1; // all points are visible
    this.centre = { x: (left + right) / 2, y: (bottom + top) / 2 };
  }

  goTo(x, y, zoom) {
    this.centre = { x, y };
    this.zoom = Math.max(1, Math.min(MAX_ZOOM, zoom));
  }

  /** Centre a point, zoomed in far enough to tell it from its neighbours. */
  show(point, zoom = 6) {
    this.centre = { x: this.x[point], y: this.y[point] };
    this.zoom = Math.max(this.zoom, zoom);
  }

  /** Add points; the bounds stay. */
  add(x, y) {
    const append = (values, more) => Float32Array.from([...values, ...more]);
    [this.x, this.y] = [append(this.x, x), append(this.y, y)];
  }

  /** The points inside a polygon on the screen. */
  inside(polygon) {
    const xs = polygon.map(({ x }) => (x - this.width / 2) / this.scale + this.centre.x);
    const ys = polygon.map(({ y }) => this.centre.y - (y - this.height / 2) / this.scale);
    const isInside = (x, y) => {
      let crossings = 0; // of the edges, by a ray to the right
      for (let from = xs.length - 1, to = 0; to < xs.length; from = to, to += 1) {
        if (ys[from] > y === ys[to] > y) continue;
        if (x < xs[from] + ((y - ys[from]) / (ys[to] - ys[from])) * (xs[to] - xs[from])) crossings += 1;
      }
      return crossings % 2 === 1;
    };
    return [...this.x.keys()].filter((point) => isInside(this.x[point], this.y[point]));
  }

  /** The point nearest to a position on the screen, or -1 if none is within `radius` pixels. */
  nearest(x, y, radius = Infinity) {
    const scale = this.scale;
    const px = (x - this.width / 2) / scale + this.centre.x;
    const py = this.centre.y - (y - this.height / 2) / scale;
    let best = -1;
    let bestDistance = (radius / scale) ** 2;
    for (let point = 0; point < this.x.length; point += 1) {
      const distance = (this.x[point] - px) ** 2 + (this.y[point] - py) ** 2;
      if (distance < bestDistance) {
        bestDistance = distance;
        best = point;
      }
    }
    return best;
  }
}
