-- SPDX-License-Identifier: MIT
-- What a lock of redlockd protects, in MariaDB or MySQL. Each row remembers the
-- highest fencing token that it has seen, and accepts no lower one. Statements
-- take parameters: run each through your library.
-- name: schema
CREATE TABLE orders (
    id    BIGINT      PRIMARY KEY,
    state VARCHAR(40) NOT NULL,
    fence BIGINT      NOT NULL DEFAULT 0
) ENGINE = InnoDB;

-- Write: both statements in one transaction. If the SELECT finds no row, a later
-- holder has been there: roll back and stop. Do not count changed rows instead:
-- a row that already has these values is not changed.
-- name: write
UPDATE orders SET state = :state, fence = :fence
 WHERE id = :id AND fence <= :fence;
SELECT id FROM orders WHERE id = :id AND fence = :fence FOR UPDATE;

-- Read what a later write depends on: this raises the fence too. Otherwise an
-- earlier holder could still write between your read and your write.
-- name: read
UPDATE orders SET fence = :fence
 WHERE id = :id AND fence <= :fence;
SELECT state FROM orders WHERE id = :id AND fence = :fence FOR UPDATE;

-- Insert: if the row is there already, the same rule.
-- name: put
INSERT INTO orders (id, state, fence) VALUES (:id, :state, :fence)
ON DUPLICATE KEY UPDATE
    state = IF(fence <= VALUES(fence), VALUES(state), state),
    fence = GREATEST(fence, VALUES(fence));
SELECT id FROM orders WHERE id = :id AND fence = :fence FOR UPDATE;
