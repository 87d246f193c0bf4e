# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # Which thread sends what. A request with one operation is sent by the thread that
  # wants it: if that is interrupted, its connection is closed. A batch of several is
  # sent by a thread of this package: whoever is interrupted or killed leaves it, and the
  # others get their answers.
  class Dispatcher
    # After this time, a thread that was to send something has not run.
    LATE_MS = 1000

    # exchange: sends a Send, and returns its Answer; calls its block when that is
    # overdue.
    def initialize(&exchange)
      @exchange = exchange
      @mutex = Mutex.new
      @coalescer = Coalescer.new
    end

    # Returns the Answer.
    def ask(wanted)
      # The thread was killed, perhaps as all are at the end of the program: it waits for
      # no other.
      if Thread.current.status == "aborting"
        wanted.is_direct = true
        return @exchange.call(wanted)
      end

      wanted.item # what is wrong with it is raised here, and not in another thread
      mailbox = Thread::Queue.new
      operation = Operation.new(wanted, mailbox)
      begin
        whole { add([wanted.operation = operation], own: operation) }
        until operation.answer
          _, what = mailbox.pop
          carry(what) if what.is_a?(Request)
        end
        operation.answer
      ensure
        whole { leave(operation) }
      end
    end

    # What is requested together. Each mailbox gets the Request, if that has one
    # operation, or the Answer. own: whose mailbox this thread reads next.
    def add(operations, own: nil)
      @mutex.synchronize do
        operations.each { |operation| @coalescer.add(operation) }
        dispatch(own)
      end
    end

    # Sends the request, and tells what came of it.
    def carry(request)
      answer = nil
      answer = @exchange.call(request.wanted) { end_early(request) }
    ensure
      whole { @mutex.synchronize { land(request, answer) } }
    end

    private

    # What an interrupt does not cut.
    def whole(&block)
      Thread.handle_interrupt(Object => :never, &block)
    end

    # With the mutex, as land.
    def dispatch(own = nil)
      while (request = @coalescer.take)
        first = request.operations.first
        next carry_soon(request) if request.operations.size > 1

        first.tell(request)
        watch(request) unless first.equal?(own)
      end
    end

    def carry_soon(request)
      Senders.call { carry(request) }
    end

    # The thread may wait for something else, as for a fiber that waits for this place.
    def watch(request)
      request.timer = Timers.at(Clock.now_ms + request.wanted.wait_ms + LATE_MS) { end_early(request) }
    end

    def end_early(request)
      @mutex.synchronize do
        @coalescer.ended(request)
        dispatch
      end
    end

    def land(request, answer)
      answer ||= failure(Answer::LOST)
      Timers.cancel(request.timer) if request.timer
      @coalescer.landed(request, answer).each { |operation| operation.tell(operation.answer) }
      dispatch
    end

    # Unless it has its answer: nobody waits for that.
    def leave(operation)
      @mutex.synchronize do
        next if operation.answer

        operation.has_left = true
        request = operation.request
        if request.nil?
          @coalescer.remove(operation)
          operation.answer = failure(Answer::UNSENT)
        elsif request.operations.size == 1 # this thread was to send it
          land(request, failure(Answer::UNSENT))
        end
      end
    end

    def failure(code)
      Answer.failure(code, "interrupted", "", Clock.now_ms)
    end
  end
end
