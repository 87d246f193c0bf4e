-- SPDX-License-Identifier: MIT
-- What a lock of redlockd protects, in PostgreSQL. Each row remembers the highest
-- fencing token that it has seen, and accepts no lower one.
CREATE TABLE IF NOT EXISTS orders (
    id    bigint PRIMARY KEY,
    state text   NOT NULL,
    fence bigint NOT NULL DEFAULT 0
);

-- Write: one statement, so that no other writer comes between look and change.
-- No row: a later holder has been there. Stop.
PREPARE write_order(bigint, text, bigint) AS
UPDATE orders SET state = $2, fence = $3
 WHERE id = $1 AND fence <= $3
RETURNING id;

-- Read what a later write depends on: this raises the fence too, or else an
-- earlier holder could still write between your read and your write.
PREPARE read_order(bigint, bigint) AS
UPDATE orders SET fence = $2
 WHERE id = $1 AND fence <= $2
RETURNING state;

-- Insert: if the row is there already, the same rule.
PREPARE put_order(bigint, text, bigint) AS
INSERT INTO orders (id, state, fence) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, fence = excluded.fence
 WHERE orders.fence <= excluded.fence
RETURNING id;
