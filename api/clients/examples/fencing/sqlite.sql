-- SPDX-License-Identifier: MIT
-- What a lock of redlockd protects, in SQLite. Each row remembers the highest
-- fencing token that it has seen, and accepts no lower one. RETURNING needs
-- SQLite 3.35. Statements take parameters: run each through your library.
-- name: schema
CREATE TABLE orders (
    id    INTEGER PRIMARY KEY,
    state TEXT    NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0
);

-- Write: one statement, so that no other writer comes between look and change.
-- No row: a later holder has been there. Stop.
-- name: write
UPDATE orders SET state = :state, fence = :fence
 WHERE id = :id AND fence <= :fence
RETURNING id;

-- Read what a later write depends on: this raises the fence too, or else an
-- earlier holder could still write between your read and your write.
-- name: read
UPDATE orders SET fence = :fence
 WHERE id = :id AND fence <= :fence
RETURNING state;

-- Insert: if the row is there already, the same rule.
-- name: put
INSERT INTO orders (id, state, fence) VALUES (:id, :state, :fence)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, fence = excluded.fence
 WHERE orders.fence <= excluded.fence
RETURNING id;
