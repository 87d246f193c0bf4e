# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # Extends a lock while it is held, and notices when it is lost: also while a server
  # takes its time.
  class Keeper
    attr_reader :caller

    # on_loss: called once, with the LockLost, by a thread that must not wait.
    def initialize(hold, caller, talk, on_loss)
      @hold = hold
      @caller = caller
      @talk = talk
      @on_loss = on_loss
      @mutex = Mutex.new
      @is_renewing = @is_last = @is_stopped = @is_forgotten = false
      @rests_until_ms = 0.0 # after a renewal that raised
      @mutex.synchronize { schedule }
    end

    # From now on the lock cannot be lost.
    def stop
      @mutex.synchronize do
        @is_stopped = true
        Timers.cancel(@timer) if @timer
      end
    end

    # The garbage collector calls this, in any thread: it must not wait for a mutex.
    def forget
      @is_forgotten = true
    end

    # After an extend that was asked for.
    def moved
      @mutex.synchronize do
        @is_last = false
        schedule
      end
    end

    def lose(loss)
      @mutex.synchronize do
        return if @is_stopped

        @is_stopped = true
        Timers.cancel(@timer) if @timer
        @hold.loss ||= loss
      end
      @on_loss.call(@hold.loss)
    end

    # Extends it once; yields what to do, and goes on with what came of that.
    def renew(&step)
      is_extended = @talk.extend(@hold, &step)
      @mutex.synchronize do
        @is_renewing = false
        @is_last = !is_extended
        schedule
      end
    rescue LockLost => e
      lose(e)
    end

    # The renewal raised, as a logger may.
    def renew_later
      @mutex.synchronize do
        @is_renewing = false
        @rests_until_ms = Clock.now_ms + @hold.remaining_ms / 4
        schedule
      end
    end

    def stopped?
      @is_stopped || @is_forgotten
    end

    private

    # With the mutex.
    def schedule
      return if @is_stopped

      Timers.cancel(@timer) if @timer
      grant = @hold.grant
      rests = @is_renewing || @is_last
      @timer = Timers.at(rests ? grant.work_until_ms : [renew_at_ms, grant.work_until_ms].min) { wake }
    end

    def renew_at_ms
      [@hold.grant.renew_at_ms, @rests_until_ms].max
    end

    def wake
      loss = @hold.find_loss
      return lose(loss) if loss

      @mutex.synchronize do
        return if stopped?

        if !@is_renewing && !@is_last && Clock.now_ms >= renew_at_ms
          @is_renewing = true
          Renewals.add(self)
        end
        schedule
      end
    end
  end
end
