# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # A lock for a block, which keeps it until the block is left; or for acquire and
  # release. While it is held, threads of this package extend it.
  #
  # A thread that is interrupted while it acquires, as by Timeout.timeout, gives the
  # lock back before the exception goes on: that takes two seconds at most. If it is
  # interrupted while it releases, another thread goes on with that.
  class Lock
    # How long an acquire that was interrupted waits until the lock is given back.
    GIVE_BACK_S = 2

    # Client#lock makes locks.
    def initialize(client, wanted, interrupt:, on_loss:)
      @client = client
      @wanted = wanted
      @interrupt = interrupt
      @on_loss = on_loss
      @hold = @keeper = nil
      @gate = Mutex.new # while the thread is interrupted
    end

    # Internal: what the garbage collector calls must not refer to the lock.
    def self.forgotten(keeper)
      ->(_) { keeper.forget }
    end

    NOTHING = ->(_loss) {}
    private_constant :NOTHING

    # Acquires the lock, yields it, and releases it. Returns what the block returns.
    # Raises LockLost if the lock was lost meanwhile, unless the block raised
    # something itself.
    def with(&block)
      Thread.handle_interrupt(Object => :never) do
        acquire
        with_held(&block)
      end
    end

    # The same of a lock that is held already.
    def with_held
      Thread.handle_interrupt(Object => :never) do
        holding
        @thread = Thread.current if @interrupt
        is_done = false
        begin
          result = Thread.handle_interrupt(Object => :immediate) { yield self }
          is_done = true
        ensure
          # no loss is raised from now on
          @gate.synchronize { @thread = nil }
          is_done ? release : release_quietly
        end
        result
      end
    end

    # Raises LockHeld if somebody else holds it until the wait has passed.
    def acquire
      acquire_as(@wanted)
      nil
    end

    # Whether it was acquired, without a wait; false: somebody else holds it.
    def try_acquire
      acquire_as(@wanted.dup.tap { |wanted| wanted.wait_ms = 0 })
      true
    rescue LockHeld
      false
    end

    # Lets others have the lock. Raises LockLost if it was lost before: then others may
    # have worked at the same time.
    def release
      Thread.handle_interrupt(Object => :never) do
        hold = holding
        @keeper.stop
        loss = hold.find_loss
        @hold = @keeper = nil
        ObjectSpace.undefine_finalizer(self)
        # A lost lock is released, too: of several resources, some may be locked.
        give_up(hold, loss)
        raise loss if loss
      end
      nil
    end

    # Raises LockLost if the lock is lost, by the clock of this machine. Call it right
    # before each step that cannot be undone.
    def check
      loss = holding.find_loss
      raise loss if loss
    end

    # Whether this object holds it. Asks no server.
    def owned?
      remaining.positive?
    end

    # How long you may work under it, in seconds; 0: it is lost, or not held.
    def remaining
      (own_hold&.remaining_ms || 0) / 1000.0
    end

    # A storage should refuse lower ones than the highest it has seen.
    def fencing_token
      holding.grant.fencing_token
    end

    # The numbers of its permits.
    def slots
      holding.slots
    end

    # Whether it is shared with other readers now.
    def shared?
      holding.grant.is_shared
    end

    # Extends it to so many seconds from now on; later extends use this TTL, too.
    def extend(ttl)
      hold = holding
      change { |talk, step| talk.extend(hold, (ttl * 1000).round, &step) }
    end

    # Makes an exclusive lock a shared one: other readers may join from now on. Stop
    # writing before.
    def downgrade
      hold = holding
      change { |talk, step| talk.downgrade(hold, &step) }
    end

    def inspect # without the token, a secret
      "#<Redlockd::Lock #{@wanted.name}#{' held' if owned?}>"
    end

    private

    def acquire_as(wanted)
      raise "#{wanted.name}: this object holds the lock already" if own_hold

      Thread.handle_interrupt(Object => :never) do
        grant = granted(wanted)
        hold = Hold.new(wanted, grant)
        @process = Process.pid
        wants_to_know = @interrupt || @on_loss
        @keeper = Keeper.new(hold, @client.caller, @client.talk,
                             wants_to_know ? method(:lost).to_proc : NOTHING)
        # Whoever forgets the object keeps no lock for ever: it expires.
        ObjectSpace.define_finalizer(self, Lock.forgotten(@keeper)) unless wants_to_know
        @hold = hold
      end
    end

    def granted(wanted)
      attempt = Attempt.new(wanted)
      begin
        grant = Thread.handle_interrupt(Object => :immediate) do
          @client.caller.run { |step| @client.talk.acquire(wanted, attempt, &step) }
        end
      ensure
        # an interrupt may be an Error, too: the LockLost of another lock
        has_ended = grant || attempt.error
        give_back(wanted, attempt) if !has_ended && (attempt.is_open || attempt.may_be_granted)
      end
    end

    def give_back(wanted, attempt)
      client = @client
      thread = Workers.call_before_end do
        grant = attempt.settle
        if grant || attempt.may_be_granted
          client.caller.run { |step| client.talk.give_back(wanted, attempt, grant, &step) }
        end
      end
      thread&.join(GIVE_BACK_S)
    end

    # If this is interrupted, a thread goes on.
    def give_up(hold, loss)
      is_done = false
      Thread.handle_interrupt(Object => :immediate) do
        @client.caller.run { |step| @client.talk.release(hold, &step) }
      end
      is_done = true
    rescue LockLost => e
      raise unless hold.is_done # an interrupt, as by the loss of another lock

      is_done = true
      raise loss || e
    ensure
      client = @client
      unless is_done
        Workers.call_before_end do
          client.caller.run { |step| client.talk.release(hold, may_be_done: true, &step) }
        rescue LockLost
          nil
        end
      end
    end

    def release_quietly
      hold = own_hold
      release if hold
    rescue LockLost => e
      raise unless e.equal?(hold.loss)

      @client.logger&.warn(e.message)
    end

    def lost(loss)
      @gate.synchronize { @thread&.raise(loss) }
      callback = @on_loss
      Workers.call { callback.call(loss) } if callback
    end

    def change
      hold = @hold
      caller = @client.caller
      caller.run { |step| yield @client.talk, step }
      @keeper&.moved
      nil
    rescue LockLost => e
      @keeper&.lose(e) if e.equal?(hold.loss)
      raise
    end

    def holding
      own_hold or raise "#{@wanted.name}: this object does not hold the lock: acquire it first"
    end

    # A forked child does not hold what its parent holds.
    def own_hold
      @hold if @process == Process.pid
    end
  end
end
